// How fast a server answers: the last calls as a line, with median and p95 in words.
import { useTranslation } from "react-i18next";
import type { ActivityEntry } from "../api/schema";
import { milliseconds, quantile } from "../ui/format";
import { Sparkline } from "../ui/sparkline";

export const LATENCY_CALLS = 50;

/** The durations of the last calls of each server, oldest first. */
export function durationsByServer(calls: readonly ActivityEntry[]): Map<string, number[]> {
  const byServer = new Map<string, number[]>();
  for (const call of calls) {
    const durations = byServer.get(call.server_id) ?? [];
    if (durations.length < LATENCY_CALLS) durations.push(call.duration_ms);
    byServer.set(call.server_id, durations);
  }
  for (const durations of byServer.values()) durations.reverse();
  return byServer;
}

export function Latency({ name, durations }: { name: string; durations: readonly number[] | undefined }) {
  const { t } = useTranslation();
  if (!durations || durations.length === 0) return <span className="text-soft">–</span>;
  const median = quantile(durations, 0.5);
  const p95 = quantile(durations, 0.95);
  return (
    <span className="inline-flex items-center gap-2">
      <Sparkline
        values={durations}
        width={56}
        label={t("list.latencyOf", { name, median: Math.round(median), p95: Math.round(p95) })}
      />
      <span aria-hidden className="text-xs whitespace-nowrap text-soft">
        {milliseconds(median)} ms
      </span>
    </span>
  );
}

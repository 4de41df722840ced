// The table of calls. Long ones hold only their visible part in the page.
import { useQuery } from "@tanstack/react-query";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { ChevronRight } from "lucide-react";
import { useLayoutEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import type { ActivityEntry } from "../api/schema";
import { serverHref } from "../servers/status";
import { useLanguage } from "../settings/preferences";
import { bytes, milliseconds, when } from "../ui/format";
import { flightQuery } from "./flight";
import { FlightRecorder } from "./flight-recorder";
import { OutcomeWord, actionOf } from "./outcome";

type Props = { calls: readonly ActivityEntry[]; stale: boolean };

const COLUMNS =
  "grid grid-cols-[2rem_4rem_1fr_auto] items-center gap-x-2 md:gap-x-3 md:grid-cols-[2rem_7rem_6rem_minmax(7rem,1fr)_2fr_9rem_6rem]";

export function ActivityTable({ calls, stale }: Props) {
  const { t } = useTranslation();
  const body = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  useLayoutEffect(() => setMargin(body.current ? body.current.getBoundingClientRect().top + window.scrollY : 0), []);
  const virtualizer = useWindowVirtualizer({
    count: calls.length,
    estimateSize: () => 41,
    overscan: 12,
    scrollMargin: margin,
    getItemKey: (index) => calls[index]!.call_id,
  });
  const toggle = (id: string) => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  return (
    <div
      role="table"
      aria-label={t("activity.table")}
      aria-rowcount={calls.length + 1}
      className={`card overflow-hidden ${stale ? "stale" : ""}`}
    >
      <div role="rowgroup">
        <div
          role="row"
          aria-rowindex={1}
          className={`${COLUMNS} border-b border-line bg-sunken px-3 py-2 text-sm font-medium text-soft max-md:sr-only`}
        >
          <span role="columnheader">
            <span className="sr-only">{t("common.more")}</span>
          </span>
          <span role="columnheader">{t("activity.time")}</span>
          <span role="columnheader">{t("activity.source")}</span>
          <span role="columnheader">{t("activity.server")}</span>
          <span role="columnheader">{t("activity.action")}</span>
          <span role="columnheader">{t("activity.result")}</span>
          <span role="columnheader" className="text-right">
            {t("activity.duration")}
          </span>
        </div>
      </div>
      <div role="rowgroup" ref={body} className="relative" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map((row) => {
          const call = calls[row.index]!;
          return (
            <div
              key={row.key}
              role="none"
              ref={virtualizer.measureElement}
              data-index={row.index}
              className="absolute inset-x-0 top-0 border-b border-line"
              style={{ transform: `translateY(${row.start - margin}px)` }}
            >
              <CallRow
                call={call}
                index={row.index}
                open={open.has(call.call_id)}
                onToggle={() => toggle(call.call_id)}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
}

type RowProps = { call: ActivityEntry; index: number; open: boolean; onToggle: () => void };

function CallRow({ call, index, open, onToggle }: RowProps) {
  const { t } = useTranslation();
  const language = useLanguage();
  const time = when(call.started_at, language);
  return (
    <>
      <div role="row" aria-rowindex={index + 2} className={`${COLUMNS} px-3 py-1.5`}>
        <span role="cell">
          <button
            type="button"
            className="btn btn-quiet btn-icon size-7 min-h-7"
            aria-expanded={open}
            aria-label={t("activity.details", { action: actionOf(call), time })}
            onClick={onToggle}
          >
            <ChevronRight size={15} className={open ? "rotate-90" : ""} aria-hidden />
          </button>
        </span>
        <span role="cell" className="text-soft">
          {time}
        </span>
        <span role="cell" className="min-w-0 max-md:hidden">
          {t(`activity.sources.${call.source ?? "api"}`)}
          {call.client && call.client !== call.source && (
            <span className="block truncate text-sm text-soft">{call.client}</span>
          )}
        </span>
        <span role="cell" className="min-w-0">
          <Link href={serverHref(call.server)} className="link">
            {call.server}
          </Link>
          <code className="block truncate text-soft md:hidden">{actionOf(call)}</code>
        </span>
        <span role="cell" className="min-w-0 max-md:hidden">
          <code>{actionOf(call)}</code>
          {call.tool && <span className="ml-2 text-sm text-soft">{call.method}</span>}
        </span>
        <span role="cell">
          <OutcomeWord outcome={call.outcome} />
        </span>
        <span role="cell" className="text-right whitespace-nowrap text-soft max-md:hidden">
          {milliseconds(call.duration_ms)} ms
        </span>
      </div>
      {open && <Details call={call} />}
    </>
  );
}

/** The recorder has the whole messages, the activity only params and result: one of them is shown. */
function useSizes(call: ActivityEntry): ["activity.bytesIn" | "activity.bytesOut", number][] {
  const flight = useQuery({ ...flightQuery(call.call_id), enabled: call.recorded }).data;
  return [
    ["activity.bytesIn", flight ? flight.request.bytes : call.request_bytes],
    ["activity.bytesOut", flight ? (flight.response?.bytes ?? 0) : call.response_bytes],
  ];
}

function Details({ call }: { call: ActivityEntry }) {
  const { t } = useTranslation();
  const facts: [name: string, value: string, className?: string][] = [
    // What a phone has no columns for.
    [t("activity.source"), call.client || t(`activity.sources.${call.source ?? "api"}`), "md:hidden"],
    [t("activity.duration"), `${milliseconds(call.duration_ms)} ms`, "md:hidden"],
    [t("activity.callId"), call.call_id],
    ...useSizes(call).map(([name, size]): [string, string] => [t(name), bytes(size)]),
  ];
  return (
    <div role="row">
      <div role="cell" className="px-4 pb-3 md:pl-12">
        <dl className="flex flex-wrap gap-x-6 gap-y-1 text-sm">
          {facts.map(([name, value, className = ""]) => (
            <div key={name} className={`flex gap-1.5 ${className}`}>
              <dt className="text-soft">{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        {call.error && (
          <p className="mt-1 text-sm">
            <span className="text-soft">{t("activity.errorText")} </span>
            <span className="text-bad">{call.error}</span>
          </p>
        )}
        {call.recorded && (
          <section aria-label={t("chat.flight")} className="mt-3">
            <FlightRecorder callId={call.call_id} />
          </section>
        )}
      </div>
    </div>
  );
}

// What a server uses now, and over the last minutes.
import { useTranslation } from "react-i18next";
import type { ServerView } from "../../api/schema";
import { bytes } from "../../ui/format";
import { Sparkline } from "../../ui/sparkline";
import { Card } from "./overview";
import { type Sample, useHistory } from "./usage-history";

const percent = (value: number) => `${value < 10 ? value.toFixed(1) : Math.round(value)} %`;

export function UsageCard({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const samples = useHistory(server.id);
  const usage = server.usage ?? samples.at(-1)?.usage;
  if (!usage || server.process_status !== "running") {
    return (
      <Card title={t("overview.usage")}>
        <p className="text-soft">{t("overview.notRunning")}</p>
      </Card>
    );
  }
  return (
    <Card title={t("overview.usage")}>
      <div className="grid gap-4 sm:grid-cols-2">
        <Chart
          name={t("overview.cpu")}
          samples={samples}
          now={usage.cpu_percent}
          read={(sample) => sample.usage.cpu_percent}
          show={percent}
          label="overview.chartCpu"
        />
        <Chart
          name={t("overview.memory")}
          samples={samples}
          now={usage.memory_bytes}
          read={(sample) => sample.usage.memory_bytes}
          show={bytes}
          label="overview.chartMemory"
        />
      </div>
      <dl className="mt-3 flex flex-wrap gap-x-6 text-sm">
        <div className="flex gap-1.5">
          <dt className="text-soft">{t("overview.pids")}</dt>
          <dd>{usage.pids}</dd>
        </div>
        {usage.disk_bytes != null && (
          <div className="flex gap-1.5">
            <dt className="text-soft">{t("overview.disk")}</dt>
            <dd>{bytes(usage.disk_bytes)}</dd>
          </div>
        )}
      </dl>
    </Card>
  );
}

type ChartProps = {
  name: string;
  samples: readonly Sample[];
  now: number;
  read: (sample: Sample) => number;
  show: (value: number) => string;
  label: "overview.chartCpu" | "overview.chartMemory";
};

function Chart({ name, samples, now, read, show, label }: ChartProps) {
  const { t } = useTranslation();
  const values = samples.length > 0 ? samples.map(read) : [now];
  const highest = Math.max(...values);
  const first = samples[0]?.at ?? 0;
  const minutes = Math.max(1, Math.ceil(((samples.at(-1)?.at ?? 0) - first) / 60_000));
  return (
    <div className="min-w-0">
      <p className="flex items-baseline justify-between gap-2">
        <span className="text-soft">{name}</span>
        <span className="text-lg font-semibold">{show(now)}</span>
      </p>
      <div className="mt-1 rounded-lg border border-line bg-sunken px-1 pt-1">
        <Sparkline
          values={values}
          label={t(label, { minutes, now: show(now), max: show(highest) })}
          width={240}
          height={56}
          filled
          max={highest * 1.15}
        />
      </div>
    </div>
  );
}

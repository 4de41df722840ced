// A call down to the wire: the exact request and answer, where the time went, what the server
// wrote to stderr meanwhile, and the same request once more.
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { ApiFailure } from "../api/client";
import type { RecordedCall, RecordedText, Stages } from "../api/schema";
import { useLanguage } from "../settings/preferences";
import { FailureAlert } from "../ui/alert";
import { CopyButton } from "../ui/copy-button";
import { bytes, clock, milliseconds, stripAnsi } from "../ui/format";
import { LongText } from "../ui/json-view";
import { Loading } from "../ui/states";
import { flightQuery } from "./flight";
import { ReplayCall } from "./replay-call";

export function FlightRecorder({ callId }: { callId: string }) {
  const { t } = useTranslation();
  const query = useQuery(flightQuery(callId));
  if (query.data) return <Recorded flight={query.data} />;
  if (query.isPending) return <Loading label={t("app.loading")} />;
  if (query.error instanceof ApiFailure && query.error.kind === "not_found")
    return <p className="text-soft">{t("flight.gone")}</p>;
  return <FailureAlert title={t("flight.failed")} failure={query.error} retry={() => void query.refetch()} />;
}

function Recorded({ flight }: { flight: RecordedCall }) {
  const { t } = useTranslation();
  return (
    <div className="space-y-3">
      <Times stages={flight.stages} />
      <Wire title={t("flight.request")} wire={flight.request} />
      {flight.response ? (
        <Wire title={t("flight.response")} wire={flight.response} />
      ) : (
        <p className="text-sm text-soft">{t("flight.noResponse")}</p>
      )}
      <Stderr lines={flight.stderr} />
      <ReplayCall flight={flight} />
    </div>
  );
}

const COLOURS = { queue: "bg-edge", write: "bg-warn", server: "bg-accent-fill", input: "bg-soft", read: "bg-ok" };

/** Where the time went, in words and as one line. */
function Times({ stages }: { stages: Stages }) {
  const { t } = useTranslation();
  const ahead = stages.queue_ahead ?? 0;
  const parts = (["queue", "write", "server", "input", "read"] as const)
    .map((stage) => [stage, stages[`${stage}_ms`] ?? 0] as const)
    .filter(([stage, ms]) => stage !== "input" || ms > 0);
  return (
    <div>
      <div aria-hidden className="mb-1.5 flex h-1.5 overflow-hidden rounded-full bg-sunken">
        {/* In microseconds: shares that add up to less than 1 would leave the line's end empty. */}
        {parts.map(([stage, ms]) => (
          <span key={stage} className={COLOURS[stage]} style={{ flexGrow: ms * 1000 }} />
        ))}
      </div>
      <dl className="flex flex-wrap gap-x-5 gap-y-1 text-sm">
        {parts.map(([stage, ms]) => (
          <div key={stage} className="flex items-center gap-1.5">
            <span aria-hidden className={`size-2 rounded-full ${COLOURS[stage]}`} />
            <dt className="text-soft">{t(`flight.stages.${stage}`)}</dt>
            <dd>
              {milliseconds(ms)} ms
              {stage === "queue" && ahead > 0 && ` (${t("flight.ahead", { count: ahead })})`}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Wire({ title, wire }: { title: string; wire: RecordedText }) {
  const { t } = useTranslation();
  return (
    <div>
      <div className="mb-1 flex flex-wrap items-center gap-2 text-sm">
        <span className="font-medium">{title}</span>
        <span className="text-soft">{bytes(wire.bytes)}</span>
        {wire.truncated && <span className="tag bg-warn-soft text-warn">{t("flight.cut")}</span>}
        {wire.redacted && <span className="tag">{t("flight.redacted")}</span>}
        <CopyButton text={wire.text} label={t("flight.copy", { what: title })} iconOnly className="ml-auto" />
      </div>
      <LongText text={wire.text} coloured label={title} />
    </div>
  );
}

function Stderr({ lines }: { lines: RecordedCall["stderr"] }) {
  const { t } = useTranslation();
  const language = useLanguage();
  if (lines.length === 0) return <p className="text-sm text-soft">{t("flight.noStderr")}</p>;
  const text = lines.map(({ at, line }) => `${clock(at, language)} ${stripAnsi(line)}`).join("\n");
  return (
    <div>
      <p className="mb-1 text-sm font-medium">{t("flight.stderr")}</p>
      <LongText text={text} label={t("flight.stderr")} />
    </div>
  );
}

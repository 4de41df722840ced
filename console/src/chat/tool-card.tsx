// One tool call: what was called, how it stands, and on request its arguments, its result, its
// error and what went over the wire.
import { Ban, CircleCheck, CircleX, LoaderCircle } from "lucide-react";
import { type ReactNode, memo, useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { FlightRecorder } from "../activity/flight-recorder";
import { useLanguage } from "../settings/preferences";
import { duration, milliseconds } from "../ui/format";
import { Sentence } from "../ui/sentence";
import { JsonView, LongText } from "../ui/json-view";
import { DisclosureButton, useOpen } from "./disclosure";
import { Questions } from "./question-view";
import { ResultView, hasContent } from "./result-view";
import type { CallStatus, ToolCall } from "./types";

const LOOKS = {
  running: { icon: LoaderCircle, colour: "text-accent" },
  done: { icon: CircleCheck, colour: "text-ok" },
  error: { icon: CircleX, colour: "text-bad" },
  cancelled: { icon: Ban, colour: "text-soft" },
} as const satisfies Record<CallStatus, unknown>;

type Props = { conversation: string; call: ToolCall };

export const ToolCard = memo(function ToolCard({ conversation, call }: Props) {
  const { t } = useTranslation();
  const sections = sectionsOf(call);
  return (
    <div
      role="group"
      aria-label={t("chat.call", { n: call.n, tool: call.tool })}
      className={`tool-card ${call.status === "error" ? "border-l-2 border-l-bad" : ""}`}
    >
      <Sections call={call} conversation={conversation} sections={sections} head={<Head call={call} />} />
      {call.status === "running" && <Questions conversation={conversation} callId={call.call_id} />}
    </div>
  );
});

type Section = "arguments" | "result" | "error" | "flight";

/** What there is to open. */
function sectionsOf(call: ToolCall): Section[] {
  const sections: Section[] = ["arguments"];
  if (call.status === "done" || (call.status === "error" && hasContent(call.result))) sections.push("result");
  if (call.status === "error") sections.push("error");
  if (call.recorded && call.status !== "running") sections.push("flight");
  return sections;
}

function Head({ call }: { call: ToolCall }) {
  const { t } = useTranslation();
  const { icon: Icon, colour } = LOOKS[call.status];
  const running = call.status === "running";
  return (
    <div className="flex min-w-0 flex-1 flex-wrap items-center gap-x-2 gap-y-0.5 max-sm:basis-full">
      {running ? (
        <span role="progressbar" aria-label={t("chat.callRunning", { tool: call.tool })} className={colour}>
          <Icon size={15} className="spin" aria-hidden />
        </span>
      ) : (
        <Icon size={15} className={colour} aria-hidden />
      )}
      <span className="min-w-0">
        {call.server && <span className="text-soft">{call.server} · </span>}
        <code className="font-semibold">{call.tool}</code>
      </span>
      <span className={`text-sm font-medium whitespace-nowrap ${colour}`}>{t(`chat.status.${call.status}`)}</span>
      <span className="text-sm whitespace-nowrap text-soft">
        {running ? <Elapsed since={call.started_at} /> : call.duration_ms != null && took(call.duration_ms)}
      </span>
    </div>
  );
}

const took = (ms: number) => `${milliseconds(ms)} ms`;

/** How long it has been running, once that is worth telling. */
function Elapsed({ since }: { since: string }) {
  const language = useLanguage();
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.floor((now - Date.parse(since)) / 1000);
  return seconds >= 1 ? duration(seconds, language) : null;
}

type SectionsProps = { call: ToolCall; conversation: string; sections: Section[]; head: ReactNode };

function Sections({ call, conversation, sections, head }: SectionsProps) {
  const { t } = useTranslation();
  const id = useId();
  const key = `call:${call.call_id}`;
  const state = {
    arguments: useOpen(`${key}:arguments`, false),
    result: useOpen(`${key}:result`, false),
    error: useOpen(`${key}:error`, true),
    flight: useOpen(`${key}:flight`, false),
  };
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        {head}
        <div className="-ml-1.5 flex flex-wrap sm:ml-0">
          {sections.map((section) => (
            <DisclosureButton
              key={section}
              open={state[section][0]}
              onToggle={state[section][1]}
              controls={`${id}-${section}`}
            >
              {t(`chat.${section}`)}
            </DisclosureButton>
          ))}
        </div>
      </div>
      {sections
        .filter((section) => state[section][0])
        .map((section) => (
          <section key={section} id={`${id}-${section}`} aria-label={t(`chat.${section}`)} className="mt-2">
            {sections.length > 1 && <p className="mb-1 text-sm font-medium text-soft">{t(`chat.${section}`)}</p>}
            <SectionBody section={section} call={call} conversation={conversation} />
          </section>
        ))}
    </>
  );
}

function SectionBody({ section, call, conversation }: Props & { section: Section }) {
  switch (section) {
    case "arguments":
      return <JsonView value={call.arguments ?? {}} />;
    case "result":
      return <ResultView conversation={conversation} call={call} />;
    case "error":
      return <ErrorView call={call} />;
    case "flight":
      return <FlightRecorder callId={call.call_id} />;
  }
}

function ErrorView({ call }: { call: ToolCall }) {
  const { t } = useTranslation();
  const stack = call.error?.stack?.trim();
  const outcome = call.outcome ?? "tool_error";
  // A server's own words stay as they are.
  const ofServer = outcome === "tool_error" || outcome === "mcp_error";
  return (
    <div className="rounded-lg border border-bad/40 bg-bad-soft px-3 py-2">
      <p className="text-sm text-soft">
        {t(`chat.outcomes.${outcome}`)}
        {call.error?.code != null && ` (${call.error.code})`}
      </p>
      {call.error &&
        (ofServer ? (
          <p className="whitespace-pre-wrap">{call.error.message}</p>
        ) : (
          <Sentence text={call.error.message} />
        ))}
      {stack && (
        <div className="mt-2">
          <LongText text={stack} label={t("chat.stack")} />
        </div>
      )}
    </div>
  );
}

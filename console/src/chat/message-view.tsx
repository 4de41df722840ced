// One message: what a person wrote, what the model answered, or what befell the turn.
import { Brain, CircleStop, LoaderCircle } from "lucide-react";
import { memo, useId } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import type { ModelFailure, ModelFailureKind } from "../api/schema";
import { Alert } from "../ui/alert";
import { Sentence } from "../ui/sentence";
import { DisclosureButton, useOpen } from "./disclosure";
import { Markdown } from "./markdown";
import { problemWords } from "./problem";
import type { AssistantMessage, Notice, UserMessage } from "./types";

export const UserView = memo(function UserView({ message }: { message: UserMessage }) {
  const { t } = useTranslation();
  return (
    <article className="flex justify-end">
      <h2 className="sr-only">{t("chat.you")}</h2>
      <p className="max-w-[85%] rounded-2xl rounded-br-md bg-accent-soft px-3.5 py-2 whitespace-pre-wrap">
        {message.text}
      </p>
    </article>
  );
});

export const AnswerView = memo(function AnswerView({ message }: { message: AssistantMessage }) {
  const { t } = useTranslation();
  const waiting = message.state === "streaming" && message.text === "";
  return (
    <article aria-busy={message.state === "streaming"} className="min-w-0">
      <h2 className="sr-only">{t("chat.assistant")}</h2>
      {message.reasoning && <Reasoning message={message} />}
      {message.text !== "" && <Markdown text={message.text} />}
      {waiting && <Thinking />}
    </article>
  );
});

/** The model has been asked and has not said anything yet. */
export function Thinking() {
  const { t } = useTranslation();
  return (
    <p className="flex items-center gap-2 text-soft">
      <LoaderCircle size={15} className="spin" aria-hidden />
      {t("chat.waiting")}
    </p>
  );
}

function Reasoning({ message }: { message: AssistantMessage }) {
  const { t } = useTranslation();
  const id = useId();
  const [open, toggle] = useOpen(`reasoning:${message.id}`, false);
  return (
    <div className="mb-2">
      <DisclosureButton open={open} onToggle={toggle} controls={id} className="-ml-1.5">
        <Brain size={14} aria-hidden />
        {t("chat.reasoning")}
      </DisclosureButton>
      {open && (
        <section
          id={id}
          aria-label={t("chat.reasoning")}
          className="mt-1 border-l-2 border-line pl-3 text-sm whitespace-pre-wrap text-soft"
        >
          {message.reasoning}
        </section>
      )}
    </div>
  );
}

/** What can be done about the last notice. */
export type GoOn = { disabled: boolean; onContinue: () => void; onAnswerNow: () => void };

/** `goOn` only where the notice is the last thing: what is past needs nobody. */
export function NoticeView({ notice, goOn }: { notice: Notice; goOn: GoOn | null }) {
  const { t } = useTranslation();
  switch (notice.notice) {
    case "limit":
      return (
        <Alert
          tone="warn"
          role={goOn ? "alert" : "note"}
          title={t("chat.limit", { steps: notice.steps, limit: notice.limit })}
        >
          {goOn && (
            <>
              <p className="text-soft">{t("chat.limitHint")}</p>
              <p className="mt-2 flex flex-wrap gap-2">
                <ContinueButton goOn={goOn} primary />
                <button type="button" className="btn btn-small" disabled={goOn.disabled} onClick={goOn.onAnswerNow}>
                  {t("chat.answerNow")}
                </button>
              </p>
            </>
          )}
        </Alert>
      );
    case "error":
      return <ProblemView problem={notice.error} goOn={goOn} />;
    default:
      return (
        <p className="flex flex-wrap items-center gap-2 text-sm text-soft">
          <CircleStop size={15} aria-hidden />
          <span>{t("chat.stopped")}</span>
          {goOn && <ContinueButton goOn={goOn} />}
        </p>
      );
  }
}

export function ContinueButton({ goOn, primary = false }: { goOn: GoOn; primary?: boolean }) {
  const { t } = useTranslation();
  return (
    <button
      type="button"
      className={`btn btn-small ${primary ? "btn-primary" : ""}`}
      disabled={goOn.disabled}
      onClick={goOn.onContinue}
    >
      {t("chat.continue")}
    </button>
  );
}

/** Failures that are put right in the settings. */
const SETTINGS_HELP = new Set<ModelFailureKind>([
  "not_configured",
  "no_model",
  "wrong_key",
  "no_such_model",
  "unreachable",
]);

function ProblemView({ problem, goOn }: { problem: ModelFailure; goOn: GoOn | null }) {
  const { t } = useTranslation();
  return (
    <Alert title={problemWords(problem, t)} role={goOn ? "alert" : "note"}>
      <Sentence text={problem.message} />
      {problem.hint && <Sentence text={problem.hint} className="text-soft" />}
      {problem.retry_after != null && (
        <p className="text-soft">{t("chat.retryAfter", { seconds: Math.ceil(problem.retry_after) })}</p>
      )}
      {goOn && (
        <p className="mt-2 flex flex-wrap gap-2">
          <button type="button" className="btn btn-small" disabled={goOn.disabled} onClick={goOn.onContinue}>
            {t("common.retry")}
          </button>
          {SETTINGS_HELP.has(problem.kind) && (
            <Link href="/settings" className="btn btn-small">
              {t("chat.openSettings")}
            </Link>
          )}
        </p>
      )}
    </Alert>
  );
}

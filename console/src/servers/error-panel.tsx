// Why a server failed: the words, the exit code, the command line and what it wrote to stderr.
import type { TFunction } from "i18next";
import { RotateCw, ScrollText } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import { useSwitch } from "../api/actions";
import { useAway } from "../api/connection";
import type { Failure, ServerView } from "../api/schema";
import { en } from "../i18n/en";
import { CopyButton } from "../ui/copy-button";
import { shellLine, stripAnsi } from "../ui/format";
import { tellFailure } from "../ui/notices";
import { Sentence } from "../ui/sentence";
import { argvOf, isMoving, serverHref } from "./status";

type Props = { server: ServerView; failure: Failure; id?: string };

export function ErrorPanel({ server, failure, id }: Props) {
  const { t } = useTranslation();
  const argv = shellLine(argvOf(server));
  const stderr = stripAnsi(failure.stderr ?? "").trimEnd();
  const remote = server.kind === "remote";
  return (
    <section
      id={id}
      aria-label={t("error.region", { name: server.name })}
      className="rounded-lg border border-bad/40 bg-bad-soft p-3"
    >
      <p className="font-semibold">{kindWords(failure, t)}</p>
      <Sentence text={failure.message} className="mt-0.5" />
      {failure.hint && <Sentence text={failure.hint} className="mt-0.5 text-soft" />}
      <dl className="mt-2 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-sm">
        {failure.exit_code != null && <Fact name={t("error.exitCode")} value={String(failure.exit_code)} />}
        {failure.signal != null && <Fact name={t("error.signal")} value={String(failure.signal)} />}
        <Fact name={t(remote ? "overview.url" : "error.commandLine")} value={argv} />
      </dl>
      {!remote && <Stderr text={stderr} />}
      <div className="mt-3 flex flex-wrap gap-2">
        <RetryButton server={server} />
        <Link href={serverHref(server.name, "logs")} className="btn btn-small">
          <ScrollText size={14} aria-hidden />
          {t("error.logs")}
        </Link>
        <CopyButton label={t("error.copy")} text={() => report(server, failure, argv, stderr)} />
      </div>
    </section>
  );
}

function Stderr({ text }: { text: string }) {
  const { t } = useTranslation();
  return (
    <>
      <p className="mt-2 mb-1 text-sm font-medium">{t("error.stderr")}</p>
      {text ? (
        // It scrolls, hence the keyboard must get at it.
        <pre className="code-block max-h-64 bg-surface" ref={toTheEnd} tabIndex={0} aria-label={t("error.stderr")}>
          {text}
        </pre>
      ) : (
        <p className="text-sm text-soft">{t("error.noStderr")}</p>
      )}
    </>
  );
}

/** The reason usually stands in the last lines. */
function toTheEnd(element: HTMLElement | null): void {
  if (element) element.scrollTop = element.scrollHeight;
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt className="text-soft">{name}</dt>
      <dd>
        <code>{value}</code>
      </dd>
    </>
  );
}

function RetryButton({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const change = useSwitch();
  const away = useAway();
  const retry = () =>
    change.mutate(
      { server, on: true },
      { onError: (error) => tellFailure(t("list.switchFailed", { name: server.name }), error) },
    );
  return (
    <button
      type="button"
      className="btn btn-small"
      onClick={retry}
      disabled={away || change.isPending || isMoving(server.status)}
    >
      <RotateCw size={14} aria-hidden />
      {t("common.retry")}
    </button>
  );
}

/** The sort of failure in the reader's language; a kind of a newer daemon is called a failure. */
export function kindWords(failure: Failure, t: TFunction): string {
  return failure.kind in en.error.kinds ? t(`error.kinds.${failure.kind}`) : t("error.kinds.other");
}

function report(server: ServerView, failure: Failure, argv: string, stderr: string): string {
  const lines = [`${server.name}: ${failure.message}`, failure.hint, `$ ${argv}`];
  if (failure.exit_code != null) lines.push(`exit code ${failure.exit_code}`);
  if (failure.signal != null) lines.push(`signal ${failure.signal}`);
  return [...lines, stderr].filter(Boolean).join("\n");
}

// The head of a server's page: how it is, the switch, and what can be done.
import { ChevronDown, CircleX, Pencil, RotateCw, Trash2 } from "lucide-react";
import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import { useRestart } from "../api/actions";
import { useAway } from "../api/connection";
import type { Failure, ServerView } from "../api/schema";
import { useLanguage } from "../settings/preferences";
import { Alert } from "../ui/alert";
import { openDialog } from "../ui/dialogs";
import { duration } from "../ui/format";
import { Sentence } from "../ui/sentence";
import { tellFailure } from "../ui/notices";
import { PageTitle } from "../ui/page";
import { attentionWord, needsAttention, reasonWords } from "./attention";
import { EnableSwitch } from "./enable-switch";
import { ErrorPanel, kindWords } from "./error-panel";
import { StatusWord, isConnected } from "./status";

export function ServerHead({ server, tab }: { server: ServerView; tab: string }) {
  const { t } = useTranslation();
  return (
    <div className="mb-3 space-y-3">
      <Link href="/" className="text-sm text-soft hover:text-accent">
        ← {t("app.servers")}
      </Link>
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-3">
        <div className="min-w-0">
          <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
            <PageTitle key={server.id}>{server.name}</PageTitle>
            <StatusWord status={server.status} />
            <EnableSwitch server={server} />
          </div>
          <Facts server={server} />
        </div>
        <HeadActions server={server} />
      </div>
      {server.status === "starting" && server.preparing && <Sentence text={server.preparing} className="text-accent" />}
      {server.description && <p className="max-w-prose text-soft">{server.description}</p>}
      <HeadHealth server={server} />
      {server.error && <HeadError server={server} failure={server.error} open={tab === "overview"} />}
    </div>
  );
}

/** On every tab: a server that does not answer gives empty lists and failing calls. */
function HeadHealth({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  if (!needsAttention(server)) return null;
  return (
    <Alert tone="warn" role="note" title={attentionWord(server, t)} label={t("health.attention")}>
      {server.health_reasons.map((reason) => (
        <Sentence key={reason} text={reasonWords(reason, t)} />
      ))}
    </Alert>
  );
}

/** Open where the server is looked at as a whole; elsewhere one line, so that the tab has room. */
function HeadError({ server, failure, open }: { server: ServerView; failure: Failure; open: boolean }) {
  const { t } = useTranslation();
  const [chosen, setChosen] = useState<boolean | null>(null);
  const panel = useId();
  const shown = chosen ?? open;
  return (
    <div className="space-y-2">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="inline-flex items-center gap-1.5 text-bad">
          <CircleX size={15} aria-hidden />
          {kindWords(failure, t)}
        </span>
        <button
          type="button"
          className="link inline-flex items-center gap-1"
          aria-expanded={shown}
          aria-controls={shown ? panel : undefined}
          onClick={() => setChosen(!shown)}
        >
          {t("error.show", { name: server.name })}
          <ChevronDown size={14} className={shown ? "rotate-180" : ""} aria-hidden />
        </button>
      </p>
      {shown && <ErrorPanel server={server} failure={failure} id={panel} />}
    </div>
  );
}

function Facts({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const uptime = useUptime(server);
  const language = useLanguage();
  const facts: [string, string | null][] = [
    [t("detail.uptime"), uptime === null ? null : duration(uptime, language)],
    [t("detail.pid"), server.pid ? String(server.pid) : null],
    [t("detail.protocol"), server.protocol_version ?? null],
    [t("detail.restarts"), server.restart_count > 0 ? String(server.restart_count) : null],
  ];
  const known = facts.filter(([, value]) => value !== null);
  if (known.length === 0) return null;
  return (
    <dl className="mt-1 flex flex-wrap gap-x-4 text-sm">
      {known.map(([name, value]) => (
        <div key={name} className="flex gap-1.5">
          <dt className="text-soft">{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Counts on by itself between two answers of the daemon. */
function useUptime(server: ServerView): number | null {
  const [now, setNow] = useState(() => Date.now());
  const running = isConnected(server.status) && Boolean(server.started_at);
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [running]);
  if (!running || !server.started_at) return null;
  return Math.max(0, (now - Date.parse(server.started_at)) / 1000);
}

function HeadActions({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const away = useAway();
  const restart = useRestart();
  const { name } = server;
  const again = () =>
    restart.mutate(server, { onError: (error) => tellFailure(t("list.restartFailed", { name }), error) });
  return (
    <div className="flex flex-wrap gap-2">
      <button type="button" className="btn" disabled={away || !server.enabled || restart.isPending} onClick={again}>
        <RotateCw size={15} className={restart.isPending ? "spin" : ""} aria-hidden />
        {t("detail.restart")}
      </button>
      <button
        type="button"
        className="btn"
        disabled={away}
        aria-label={t("list.edit", { name })}
        onClick={() => openDialog({ kind: "edit", server })}
      >
        <Pencil size={15} aria-hidden />
        {t("detail.edit")}
      </button>
      <button
        type="button"
        className="btn text-bad"
        disabled={away}
        aria-label={t("list.delete", { name })}
        onClick={() => openDialog({ kind: "delete", server })}
      >
        <Trash2 size={15} aria-hidden />
        {t("detail.delete")}
      </button>
    </div>
  );
}

// What there is to know about a server at a glance.
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { Limits, ServerView } from "../../api/schema";
import { useLanguage } from "../../settings/preferences";
import { Alert } from "../../ui/alert";
import { CopyButton } from "../../ui/copy-button";
import { moment, shellLine } from "../../ui/format";
import { Sentence } from "../../ui/sentence";
import { warningWords } from "../form/check";
import { argvOf } from "../status";
import { useTokens } from "../tokens";
import { ConnectCard } from "./connect-card";
import { IsolationCard } from "./isolation-card";
import { LastCalls } from "./last-calls";
import { QueueNote } from "./queue-note";
import { UsageCard } from "./usage-card";

export function Overview({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const notes = server.warnings;
  const remote = server.kind === "remote";
  return (
    <div className="space-y-4">
      {notes.length > 0 && (
        <Alert tone="warn" role="note" title={t("detail.warnings")} label={t("detail.warnings")}>
          {notes.map((note) => (
            <Sentence key={note} text={warningWords(note, t)} />
          ))}
        </Alert>
      )}
      <QueueNote server={server} />
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <div className="min-w-0 space-y-4">
          <RunsCard server={server} />
          {!remote && <OffersCard server={server} />}
        </div>
        <div className="min-w-0 space-y-4">
          {/* What runs elsewhere uses nothing here, and nothing here isolates it. */}
          {remote ? (
            <OffersCard server={server} />
          ) : (
            <>
              <UsageCard server={server} />
              <IsolationCard server={server} />
            </>
          )}
        </div>
      </div>
      <ConnectCard server={server} />
      <LastCalls server={server} />
    </div>
  );
}

export function Card({
  title,
  hint,
  action,
  children,
}: {
  title: string;
  hint?: string;
  action?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="card min-w-0 p-4">
      <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
        <h2 className="font-semibold">{title}</h2>
        {action}
      </div>
      {hint && <p className="-mt-1 mb-2 text-sm text-soft">{hint}</p>}
      {children}
    </section>
  );
}

export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[fit-content(8.5rem)_1fr] gap-x-4 sm:grid-cols-[minmax(6rem,auto)_1fr] gap-y-1.5">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className="min-w-0">{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function RunsCard({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const language = useLanguage();
  const argv = argvOf(server);
  const program: [string, ReactNode][] = [
    [t("overview.command"), server.command && <code>{server.command}</code>],
    [t("overview.image"), server.image && <code>{server.image}</code>],
    [t("overview.url"), server.url && <code>{server.url}</code>],
    [t("overview.auth"), server.auth && t(`form.auths.${server.auth}`)],
    [t("overview.audience"), server.audience && <code>{server.audience}</code>],
    [t("overview.args"), server.args.length > 0 && <Lines values={server.args} numbered />],
  ];
  const place: [string, ReactNode][] = [
    [t("form.prefix"), server.prefix && <code>{server.prefix}</code>],
    [t("overview.cwd"), server.cwd && <code>{server.cwd}</code>],
    server.kind === "remote"
      ? [t("overview.headers"), <Masked key="headers" names={Object.keys(server.headers ?? {})} sign=": " />]
      : [t("overview.env"), <Masked key="env" names={Object.keys(server.environment)} sign="=" />],
    [t("overview.user"), server.user && <code>{server.user}</code>],
    [t("overview.volumes"), server.volumes.length > 0 && <Lines values={server.volumes} />],
    [
      t("overview.ports"),
      server.ports.length > 0 && (
        <Lines values={server.ports.map(({ container, host }) => `${container} → ${host || t("form.portHostHint")}`)} />
      ),
    ],
    [t("overview.network"), server.kind === "container" && t(`form.networks.${server.network}`)],
    [t("overview.limits"), server.kind === "container" && limitWords(server.resource_limits)],
    server.kind === "remote"
      ? [t("form.restartRemote"), t(`form.restartsRemote.${server.restart_policy}`)]
      : [t("overview.policy"), t(`form.restarts.${server.restart_policy}`)],
    [t("form.maxInFlight"), inFlightWords(server)],
    [t("overview.created"), moment(server.created_at, language)],
    [t("overview.updated"), moment(server.updated_at, language)],
    [t("overview.lastCrash"), server.last_crash_at && moment(server.last_crash_at, language)],
  ];
  const shown = [[t("overview.type"), t(`kind.${server.kind}`)] as [string, ReactNode], ...program, ...place].filter(
    ([, value]) => value !== false,
  );
  return (
    <Card
      title={t("overview.runs")}
      action={server.kind === "process" && <CopyButton label={t("overview.copyShell")} text={shellLine(argv)} />}
    >
      <Facts facts={shown} />
    </Card>
  );
}

/** `auto (8)` where the number in force is not the configured one. */
const inFlightWords = ({ max_in_flight: set, max_in_flight_effective: now }: ServerView) =>
  set === "auto" && now ? `auto (${now})` : String(set ?? now ?? "");

const limitWords = ({ cpu, memory, disk, pids }: Limits) =>
  [cpu && `${cpu} CPU`, memory, disk, pids && `${pids} PIDs`].filter(Boolean).join(" · ");

function Lines({ values, numbered = false }: { values: string[]; numbered?: boolean }) {
  const List = numbered ? "ol" : "ul";
  return (
    <List className="space-y-0.5">
      {values.map((value, index) => (
        // The same argument may stand there twice.
        <li key={index}>
          <code className="rounded bg-sunken px-1.5 py-0.5 whitespace-pre-wrap">{value === "" ? '""' : value}</code>
        </li>
      ))}
    </List>
  );
}

/** Names whose values are not shown. */
function Masked({ names, sign }: { names: string[]; sign: string }) {
  const { t } = useTranslation();
  if (names.length === 0) return <span className="text-soft">{t("overview.noEnv")}</span>;
  return (
    <ul title={t("overview.envMasked")}>
      {names.map((name) => (
        <li key={name}>
          <code>
            {name}
            <span className="text-soft">{sign}••••••</span>
          </code>
        </li>
      ))}
    </ul>
  );
}

function OffersCard({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const tokens = useTokens(server);
  const capabilities = Object.keys((server.capabilities ?? {}) as object);
  const info = server.server_info as { name?: string; title?: string; version?: string } | null | undefined;
  return (
    <Card title={t("overview.offers")}>
      <Facts
        facts={
          [
            [
              t("overview.serverInfo"),
              info ? (
                [info.title ?? info.name, info.version].filter(Boolean).join(" ")
              ) : (
                <span className="text-soft">{t("common.unknown")}</span>
              ),
            ],
            [
              t("overview.capabilities"),
              capabilities.length > 0 ? (
                <Tags words={capabilities} />
              ) : (
                <span className="text-soft">{t("common.unknown")}</span>
              ),
            ],
            [t("overview.tokens"), tokens != null && t("overview.tokensValue", { n: tokens.toLocaleString("en-US") })],
            [t("overview.includeResources"), t(server.include_resources ? "common.yes" : "common.no")],
            [t("overview.container"), server.container_id && <code>{server.container_id.slice(0, 12)}</code>],
            [t("overview.digest"), server.image_digest && <code className="text-sm">{server.image_digest}</code>],
            [t("overview.mcpEndpoint"), server.mcp_endpoint && <code>{server.mcp_endpoint}</code>],
            [t("overview.endpoints"), server.endpoints.length > 0 && <Lines values={server.endpoints} />],
          ].filter(([, value]) => value !== false) as [string, ReactNode][]
        }
      />
    </Card>
  );
}

function Tags({ words }: { words: string[] }) {
  return (
    <span className="flex flex-wrap gap-1">
      {words.map((word) => (
        <span key={word} className="tag">
          {word}
        </span>
      ))}
    </span>
  );
}

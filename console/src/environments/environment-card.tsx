// One environment: what it is for, how it is, what was run in it last, and what can be done with it.
import { CircleDashed, CirclePause, CirclePlay, FileDiff, LoaderCircle, ScrollText, Trash2 } from "lucide-react";
import { type ReactNode, useId } from "react";
import { useTranslation } from "react-i18next";
import { useAway } from "../api/connection";
import type { EnvironmentCommand, EnvironmentPort, EnvironmentState } from "../api/schema";
import { IsolationFacts } from "../servers/overview/isolation-card";
import { Facts } from "../servers/overview/overview";
import { useLanguage } from "../settings/preferences";
import { CopyButton } from "../ui/copy-button";
import { duration, moment, when } from "../ui/format";
import { ExitWord } from "./exit-word";
import type { Place } from "./queries";

/** Something that a person wants of an environment. */
export type Asked = { what: "log" | "diff" | "destroy"; place: Place };

/** `now` is when this was true, in milliseconds. */
type Props = { place: Place; now: number; onAsk: (asked: Asked) => void };

export function EnvironmentCard({ place, now, onAsk }: Props) {
  const { t } = useTranslation();
  const away = useAway();
  const heading = useId();
  const { environment } = place;
  const { id, title, branch, image, state, created_at, ports, commands, worktree, isolation } = environment;
  const facts: [string, ReactNode][] = [
    [t("environments.branch"), <Copyable key="branch" text={branch} />],
    [t("environments.image"), <code key="image">{image}</code>],
    [t("environments.container"), <StateWord key="state" state={state} />],
    [t("environments.age"), <Age key="age" at={created_at} now={now} />],
    [t("environments.ports"), <Ports key="ports" ports={ports} />],
    [t("environments.worktree"), <code key="worktree">{worktree}</code>],
  ];
  const button = (what: Asked["what"], label: string, word: string, icon: ReactNode, tone = "") => (
    <button
      type="button"
      className={`btn btn-small ${tone}`}
      aria-label={label}
      disabled={away}
      onClick={() => onAsk({ what, place })}
    >
      {icon}
      {word}
    </button>
  );
  const isThere = state === "running" || state === "stopped";
  return (
    <li className="min-w-0">
      <article className="card p-4" aria-labelledby={heading}>
        <div className="mb-3 flex flex-wrap items-baseline justify-between gap-x-3 gap-y-1">
          <h3 id={heading} className="min-w-0 font-semibold">
            {title || id}
          </h3>
          <code className="tag">{id}</code>
        </div>
        <Facts facts={facts} />
        {isolation && (
          <details className="mt-3">
            <summary className="text-sm text-soft">{t("environments.isolation")}</summary>
            <IsolationFacts isolation={isolation as Record<string, unknown>} />
          </details>
        )}
        <Commands id={id} commands={commands} />
        <div className="mt-4 flex flex-wrap gap-2">
          {isThere && (
            <>
              {button(
                "log",
                t("environments.logOf", { id }),
                t("environments.log"),
                <ScrollText size={14} aria-hidden />,
              )}
              {button(
                "diff",
                t("environments.diffOf", { id }),
                t("environments.diff"),
                <FileDiff size={14} aria-hidden />,
              )}
            </>
          )}
          <span className="flex-1" />
          {button(
            "destroy",
            t("environments.destroyOf", { id }),
            t("environments.destroy"),
            <Trash2 size={14} aria-hidden />,
            "text-bad",
          )}
        </div>
      </article>
    </li>
  );
}

function Copyable({ text }: { text: string }) {
  const { t } = useTranslation();
  return (
    <span className="inline-flex max-w-full items-center gap-1">
      <code className="min-w-0">{text}</code>
      <CopyButton
        text={text}
        label={t("environments.copyBranch", { branch: text })}
        iconOnly
        className="-my-1 pointer-coarse:-my-3"
      />
    </span>
  );
}

const LOOKS: Record<EnvironmentState, { tone: string; icon: ReactNode }> = {
  running: { tone: "text-ok", icon: <CirclePlay size={14} aria-hidden /> },
  stopped: { tone: "text-soft", icon: <CirclePause size={14} aria-hidden /> },
  creating: { tone: "text-accent", icon: <LoaderCircle size={14} className="spin" aria-hidden /> },
  destroying: { tone: "text-accent", icon: <LoaderCircle size={14} className="spin" aria-hidden /> },
  unfinished: { tone: "text-warn", icon: <CircleDashed size={14} aria-hidden /> },
};

function StateWord({ state }: { state: EnvironmentState }) {
  const { t } = useTranslation();
  const look = LOOKS[state];
  return (
    <span className={`inline-flex items-center gap-1.5 ${look.tone}`}>
      {look.icon}
      {t(`environments.states.${state}`)}
    </span>
  );
}

function Age({ at, now }: { at: string; now: number }) {
  const language = useLanguage();
  const seconds = (now - new Date(at).getTime()) / 1000;
  return (
    <time dateTime={at} title={moment(at, language)}>
      {duration(seconds, language)}
    </time>
  );
}

function Ports({ ports }: { ports: readonly EnvironmentPort[] }) {
  const { t } = useTranslation();
  if (ports.length === 0) return <span className="text-soft">{t("common.none")}</span>;
  return (
    <ul>
      {ports.map(({ container, host }) => (
        <li key={`${container}-${host}`}>
          <code>
            {container} → 127.0.0.1:{host}
          </code>
        </li>
      ))}
    </ul>
  );
}

/** More are behind a click: a card is to be looked at among others. */
const SHOWN = 4;

function Commands({ id, commands }: { id: string; commands: readonly EnvironmentCommand[] }) {
  const { t } = useTranslation();
  const rest = commands.slice(SHOWN);
  return (
    <div className="mt-3 border-t border-line pt-3">
      <h4 className="mb-1 text-sm font-medium text-soft">{t("environments.commands")}</h4>
      {commands.length === 0 && <p className="text-soft">{t("environments.noCommands")}</p>}
      {commands.length > 0 && (
        <ul aria-label={t("environments.commandsOf", { id })} className="divide-y divide-line">
          {commands.slice(0, SHOWN).map((command) => (
            <Command key={`${command.at} ${command.command}`} command={command} />
          ))}
        </ul>
      )}
      {rest.length > 0 && (
        <details>
          <summary className="py-1 text-sm text-soft">{t("environments.moreCommands", { n: rest.length })}</summary>
          <ul aria-label={t("environments.earlierOf", { id })} className="divide-y divide-line">
            {rest.map((command) => (
              <Command key={`${command.at} ${command.command}`} command={command} />
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function Command({ command: entry }: { command: EnvironmentCommand }) {
  const { t } = useTranslation();
  const language = useLanguage();
  return (
    <li className="flex flex-wrap items-baseline gap-x-3 py-1.5">
      <code className="line-clamp-2 min-w-40 flex-1 whitespace-pre-wrap">
        {entry.command || t("environments.ownCommand")}
      </code>
      <span className="flex items-baseline gap-3 text-sm whitespace-nowrap">
        {entry.background && <span className="tag">{t("environments.background")}</span>}
        <ExitWord command={entry} />
        <time dateTime={entry.at} className="text-soft">
          {when(entry.at, language)}
        </time>
      </span>
    </li>
  );
}

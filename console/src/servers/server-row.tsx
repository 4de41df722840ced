// One server in the list: what it is, how it is, and what can be done about it.
import { useQuery } from "@tanstack/react-query";
import { ChevronDown, Pencil, Trash2, TriangleAlert } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import { useAway } from "../api/connection";
import { toolsQuery } from "../api/queries";
import type { Failure, ServerView } from "../api/schema";
import { useLanguage } from "../settings/preferences";
import { openDialog } from "../ui/dialogs";
import { clock, shellLine } from "../ui/format";
import { Sentence } from "../ui/sentence";
import { attentionWord, needsAttention, reasonWords } from "./attention";
import { EnableSwitch } from "./enable-switch";
import { ErrorPanel, kindWords } from "./error-panel";
import { Latency } from "./latency";
import { StatusWord, argvOf, serverHref } from "./status";

type Props = { server: ServerView; durations: number[] | undefined };

export function ServerRow({ server, durations }: Props) {
  const [open, setOpen] = useState(false);
  const panel = useId();
  const failure = server.error ?? null;
  return (
    <>
      <tr
        role="row"
        data-row
        className="grid grid-cols-[1fr_auto] gap-x-3 gap-y-1.5 border-t border-line p-3 first:border-t-0 hover:bg-hover/50 md:table-row md:p-0"
      >
        <th
          role="rowheader"
          scope="row"
          className="min-w-0 text-left font-semibold [overflow-wrap:break-word] md:max-w-64 md:min-w-44 md:px-3 md:py-2.5 md:align-top"
        >
          <Link href={serverHref(server.name)} className="rounded hover:text-accent hover:underline">
            {server.name}
          </Link>
        </th>
        <Cell>
          <StatusWord status={server.status} />
        </Cell>
        <Cell className="col-span-2 min-w-0 md:w-full">
          <code className="line-clamp-3 text-soft" title={shellLine(argvOf(server))}>
            {shellLine(argvOf(server))}
          </code>
          {server.status === "starting" && server.preparing && (
            <Sentence text={server.preparing} className="mt-1 text-sm text-accent" />
          )}
          <HealthLine server={server} />
          {failure && (
            <ErrorLine server={server} failure={failure} open={open} panel={panel} onToggle={() => setOpen(!open)} />
          )}
        </Cell>
        <Cell className="max-md:hidden">
          <ToolCount server={server} />
        </Cell>
        <Cell className="max-md:hidden">
          <Latency name={server.name} durations={durations} />
        </Cell>
        <Cell className="self-center">
          <EnableSwitch server={server} />
        </Cell>
        <Cell tight>
          <Actions server={server} />
        </Cell>
      </tr>
      {failure && open && (
        <tr role="row" className="block md:table-row">
          <td role="cell" colSpan={7} className="block px-3 pb-3 md:table-cell">
            <ErrorPanel server={server} failure={failure} id={panel} />
          </td>
        </tr>
      )}
    </>
  );
}

function Cell({
  children,
  className = "",
  tight = false,
}: {
  children: ReactNode;
  className?: string;
  tight?: boolean;
}) {
  return (
    <td role="cell" className={`md:px-3 md:align-top ${tight ? "md:py-1" : "md:py-2.5"} ${className}`}>
      {children}
    </td>
  );
}

/** Why a server that runs needs attention. It stays for as long as that is so. */
function HealthLine({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  if (!needsAttention(server)) return null;
  const reasons = server.health_reasons.map((reason) => reasonWords(reason, t));
  return (
    <div className="mt-1 flex items-start gap-1.5 text-sm text-warn">
      <TriangleAlert size={14} className="mt-0.5 flex-none" aria-hidden />
      <div className="min-w-0">
        {(reasons.length > 0 ? reasons : [attentionWord(server, t)]).map((reason) => (
          <Sentence key={reason} text={reason} />
        ))}
      </div>
    </div>
  );
}

type ErrorLineProps = { server: ServerView; failure: Failure; open: boolean; panel: string; onToggle: () => void };

function ErrorLine({ server, failure, open, panel, onToggle }: ErrorLineProps) {
  const { t } = useTranslation();
  const language = useLanguage();
  return (
    <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
      <span className="text-bad">{kindWords(failure, t)}</span>
      {server.status === "restarting" && server.next_restart_at && (
        <span className="text-soft">{t("list.nextRestart", { when: clock(server.next_restart_at, language) })}</span>
      )}
      <button
        type="button"
        className="link inline-flex items-center gap-1"
        aria-expanded={open}
        aria-controls={open ? panel : undefined}
        onClick={onToggle}
      >
        {t("error.show", { name: server.name })}
        <ChevronDown size={14} className={open ? "rotate-180" : ""} aria-hidden />
      </button>
    </div>
  );
}

/** Asked of the server itself once it is connected. */
function ToolCount({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const tools = useQuery({ ...toolsQuery(server.id), enabled: server.status === "ready" });
  const count = server.status === "ready" ? tools.data?.length : undefined;
  if (count === undefined) return <span className="text-soft">–</span>;
  return (
    <Link
      href={serverHref(server.name, "tools")}
      className="link whitespace-nowrap"
      aria-label={t("list.toolCount", { count })}
    >
      {count}
    </Link>
  );
}

function Actions({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const away = useAway();
  const { name } = server;
  return (
    <span className="flex justify-end gap-0.5">
      <button
        type="button"
        className="btn btn-quiet btn-icon"
        disabled={away}
        aria-label={t("list.edit", { name })}
        title={t("list.edit", { name })}
        onClick={() => openDialog({ kind: "edit", server })}
      >
        <Pencil size={15} aria-hidden />
      </button>
      <button
        type="button"
        className="btn btn-quiet btn-icon hover:text-bad"
        disabled={away}
        aria-label={t("list.delete", { name })}
        title={t("list.delete", { name })}
        onClick={() => openDialog({ kind: "delete", server })}
      >
        <Trash2 size={15} aria-hidden />
      </button>
    </span>
  );
}

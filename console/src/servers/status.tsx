// A server's status as icon and word: never by colour alone.
import { CircleCheck, CircleDashed, CircleX, LoaderCircle, TriangleAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { ServerView, Status } from "../api/schema";

/** On its way from one state to another. */
export function isMoving(status: Status): boolean {
  return status === "starting" || status === "stopping" || status === "restarting";
}

/** Whether it can be asked for what it offers. */
export function isConnected(status: Status): boolean {
  return status === "ready" || status === "unresponsive";
}

/** The daemon switches a server off if its first start fails; nobody asked for that. */
export function isSwitchedOffByFailure({ enabled, status }: Pick<ServerView, "enabled" | "status">): boolean {
  return !enabled && status === "error";
}

/** The filter of the list that a status belongs to. */
export function groupOf(status: Status): "ready" | "stopped" | "error" | "moving" {
  if (status === "ready" || status === "stopped" || status === "error") return status;
  return status === "unresponsive" ? "error" : "moving";
}

const LOOKS = {
  ready: { icon: CircleCheck, colour: "text-ok" },
  stopped: { icon: CircleDashed, colour: "text-soft" },
  error: { icon: CircleX, colour: "text-bad" },
  unresponsive: { icon: TriangleAlert, colour: "text-warn" },
  starting: { icon: LoaderCircle, colour: "text-accent" },
  stopping: { icon: LoaderCircle, colour: "text-accent" },
  restarting: { icon: LoaderCircle, colour: "text-warn" },
} as const;

export function StatusWord({ status }: { status: Status }) {
  const { t } = useTranslation();
  const { icon: Icon, colour } = LOOKS[status];
  return (
    <span className={`inline-flex items-center gap-1.5 font-medium whitespace-nowrap ${colour}`}>
      <Icon size={15} className={isMoving(status) ? "spin" : ""} aria-hidden />
      {t(`status.${status}`)}
    </span>
  );
}

/** The words of a server's command line, or the image or address that stands in its place. */
export function argvOf(server: Pick<ServerView, "command" | "image" | "url" | "args">): string[] {
  return [server.command ?? server.image ?? server.url ?? "", ...server.args];
}

export function serverHref(name: string, tab = "overview"): string {
  return `/servers/${encodeURIComponent(name)}/${tab}`;
}

// The switch of one server, with what it does and how it looks while that is under way.
import { useTranslation } from "react-i18next";
import { useSwitch } from "../api/actions";
import { useAway } from "../api/connection";
import type { ServerView } from "../api/schema";
import { tellFailure } from "../ui/notices";
import { Switch } from "../ui/switch";
import { isMoving } from "./status";

export function EnableSwitch({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const change = useSwitch();
  const away = useAway();
  const { name } = server;
  const moving = isMoving(server.status);
  const toggle = (on: boolean) =>
    change.mutate({ server, on }, { onError: (error) => tellFailure(t("list.switchFailed", { name }), error) });
  return (
    <span className="inline-flex items-center gap-2">
      <Switch
        label={t("list.enable", { name })}
        checked={server.enabled}
        busy={moving || change.isPending}
        disabled={away}
        onChange={toggle}
      />
      {moving && <Progress label={t(server.status === "stopping" ? "list.stopping" : "list.starting", { name })} />}
    </span>
  );
}

/** A bar without an end: nobody knows how long a start takes. */
function Progress({ label }: { label: string }) {
  return (
    <span
      role="progressbar"
      aria-label={label}
      className="relative inline-block h-1 w-8 overflow-hidden rounded-full bg-hover"
    >
      <span className="absolute inset-y-0 left-0 w-1/2 animate-pulse rounded-full bg-accent-fill" />
    </span>
  );
}

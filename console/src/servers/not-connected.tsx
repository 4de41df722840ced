// Stands where a server would be asked for what it offers, but is not there to be asked.
import { PlugZap } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useSwitch } from "../api/actions";
import { useAway } from "../api/connection";
import type { ServerView } from "../api/schema";
import { Alert } from "../ui/alert";
import { tellFailure } from "../ui/notices";
import { isMoving } from "./status";

export function NotConnected({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const change = useSwitch();
  const away = useAway();
  const { name } = server;
  const enable = () =>
    change.mutate({ server, on: true }, { onError: (error) => tellFailure(t("list.switchFailed", { name }), error) });
  const moving = isMoving(server.status);
  const action = !moving && (
    <button type="button" className="btn btn-small" onClick={enable} disabled={away}>
      <PlugZap size={14} aria-hidden />
      {t("offers.enable")}
    </button>
  );
  return (
    <Alert
      tone={moving ? "info" : "warn"}
      title={t("offers.notConnected", { name })}
      role={moving ? "status" : "alert"}
      action={action || undefined}
    >
      {t(moving ? "offers.startingHint" : "offers.enableFirst")}
    </Alert>
  );
}

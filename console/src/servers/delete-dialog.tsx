// Asks before a server is deleted, by its name.
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useLocation } from "wouter";
import { useDelete } from "../api/actions";
import type { ServerView } from "../api/schema";
import { FailureAlert } from "../ui/alert";
import { Confirm } from "../ui/confirm";

export default function DeleteDialog({ server, onClose }: { server: ServerView; onClose: () => void }) {
  const { t } = useTranslation();
  const [path, navigate] = useLocation();
  const [purge, setPurge] = useState(false);
  const remove = useDelete();
  const done = () => {
    onClose();
    if (path.startsWith("/servers/")) navigate("/");
  };
  const running = server.status !== "stopped" && server.status !== "error";
  return (
    <Confirm
      title={t("remove.title", { name: server.name })}
      open
      onCancel={onClose}
      confirm={t("remove.confirm")}
      busy={remove.isPending}
      onConfirm={() => remove.mutate({ server, purge }, { onSuccess: done })}
    >
      <p>{t(running ? "remove.running" : "remove.stopped")}</p>
      {server.volumes.length > 0 && (
        <div className="mt-3">
          {!purge && <p>{t("remove.volumes")}</p>}
          <label className="mt-1 flex gap-2 text-ink">
            <input
              type="checkbox"
              className="check"
              checked={purge}
              onChange={(event) => setPurge(event.target.checked)}
            />
            {t("remove.purge")}
          </label>
        </div>
      )}
      {remove.isError && (
        <div className="mt-3 text-ink">
          <FailureAlert title={t("remove.failed", { name: server.name })} failure={remove.error} />
        </div>
      )}
    </Confirm>
  );
}

// Asks before an environment is destroyed, and names what goes with it and what stays.
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { FailureAlert } from "../ui/alert";
import { Confirm } from "../ui/confirm";
import { tellSuccess } from "../ui/notices";
import { type Place, useDestroy } from "./queries";

export function DestroyDialog({ place, onClose }: { place: Place; onClose: () => void }) {
  const { t } = useTranslation();
  const [force, setForce] = useState(false);
  const destroy = useDestroy();
  const { id, container, worktree, branch, state } = place.environment;
  const done = () => {
    onClose();
    tellSuccess(t("environments.destroyed", { id }));
  };
  return (
    <Confirm
      title={t("environments.destroyTitle", { id })}
      open
      onCancel={onClose}
      confirm={t("environments.destroy")}
      busy={destroy.isPending}
      onConfirm={() => destroy.mutate({ place, force }, { onSuccess: done })}
    >
      <p>{t("environments.willRemove")}</p>
      <ul className="mt-1.5 list-disc space-y-1 pl-5 text-ink">
        <li>
          {t(state === "running" ? "environments.removesRunning" : "environments.removesContainer")}{" "}
          <code>{container}</code>
        </li>
        <li>
          {t("environments.removesWorktree")} <code>{worktree}</code>
        </li>
        {force && (
          <li>
            {t("environments.removesBranch")} <code>{branch}</code>
          </li>
        )}
      </ul>
      <p className="mt-3">{t(force ? "environments.losesWork" : "environments.keepsBranch", { branch })}</p>
      <label className="mt-2 flex gap-2 text-ink">
        <input type="checkbox" className="check" checked={force} onChange={(event) => setForce(event.target.checked)} />
        {t("environments.alsoBranch")}
      </label>
      {destroy.isError && (
        <div className="mt-3 text-ink">
          <FailureAlert title={t("environments.destroyFailed", { id })} failure={destroy.error} />
        </div>
      )}
    </Confirm>
  );
}

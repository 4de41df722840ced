// Tells a screen reader of each change of a status, once.
import { useTranslation } from "react-i18next";
import { lastChange } from "../api/live";
import { useStore } from "../api/store";

export function LiveRegion() {
  const { t } = useTranslation();
  const change = useStore(lastChange);
  return (
    <div role="status" aria-label={t("app.events")} className="sr-only">
      {change ? t("app.event", { name: change.name, status: t(`status.${change.status}`) }) : ""}
    </div>
  );
}

// Tool calls that are under way right now.
import { LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";
import { runningCalls } from "../api/live";
import { useStore } from "../api/store";

const MAX_SHOWN = 5;

export function RunningCalls() {
  const { t } = useTranslation();
  const running = [...useStore(runningCalls).values()];
  if (running.length === 0) return null;
  return (
    <ul aria-label={t("activity.running")} className="card mb-3 divide-y divide-line">
      {running.slice(0, MAX_SHOWN).map((call) => (
        <li key={call.call_id} className="flex items-center gap-2 px-4 py-2">
          <LoaderCircle size={15} className="spin text-accent" aria-hidden />
          <span className="text-accent">{t("activity.running")}</span>
          <code>{call.tool}</code>
          <span className="text-soft">{call.name}</span>
        </li>
      ))}
      {running.length > MAX_SHOWN && <li className="px-4 py-2 text-soft">+{running.length - MAX_SHOWN}</li>}
    </ul>
  );
}

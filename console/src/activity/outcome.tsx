// How a call ended, as icon and word.
import { Ban, CircleCheck, CircleX, Clock } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { ActivityEntry, Outcome } from "../api/schema";

export function OutcomeWord({ outcome }: { outcome: Outcome }) {
  const { t } = useTranslation();
  const ok = outcome === "ok";
  const Icon = ok ? CircleCheck : outcome === "timeout" ? Clock : outcome === "cancelled" ? Ban : CircleX;
  return (
    <span
      className={`inline-flex items-center gap-1.5 whitespace-nowrap ${ok ? "text-ok" : outcome === "cancelled" ? "text-soft" : "text-bad"}`}
    >
      <Icon size={14} aria-hidden />
      {t(`activity.outcomes.${outcome}`)}
    </span>
  );
}

/** `tools/call read_file`, in short `read_file`. */
export function actionOf(call: Pick<ActivityEntry, "method" | "tool">): string {
  return call.tool ?? call.method;
}

// The last calls of a server.
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import { activityQuery } from "../../api/queries";
import type { ServerView } from "../../api/schema";
import { OutcomeWord, actionOf } from "../../activity/outcome";
import { useLanguage } from "../../settings/preferences";
import { milliseconds, when } from "../../ui/format";
import { Card } from "./overview";

export function LastCalls({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const language = useLanguage();
  const calls = useQuery(activityQuery(10, server.id)).data ?? [];
  const all = (
    <Link href={`/activity?server=${encodeURIComponent(server.name)}`} className="link text-sm">
      {t("overview.allActivity")}
    </Link>
  );
  return (
    <Card title={t("overview.calls")} action={all}>
      {calls.length === 0 ? (
        <p className="text-soft">{t("overview.noCalls")}</p>
      ) : (
        <ul className="divide-y divide-line">
          {calls.map((call) => (
            <li key={call.call_id} className="flex flex-wrap items-center justify-between gap-x-4 gap-y-0.5 py-1.5">
              <span className="w-20 flex-none text-soft">{when(call.started_at, language)}</span>
              <code className="min-w-0 flex-1 max-sm:order-first max-sm:basis-full">{actionOf(call)}</code>
              <OutcomeWord outcome={call.outcome} />
              <span className="w-20 text-right text-soft">{milliseconds(call.duration_ms)} ms</span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

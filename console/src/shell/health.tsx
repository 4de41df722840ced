// How many servers are up, and which of them need attention: in the header, hence on every page.
import { useQuery } from "@tanstack/react-query";
import { TriangleAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import { serversQuery } from "../api/queries";
import type { ServerView } from "../api/schema";
import { attentionWord, needsAttention } from "../servers/attention";
import { serverHref } from "../servers/status";

export function HealthStatus() {
  const { t } = useTranslation();
  const servers = useQuery(serversQuery).data ?? [];
  const up = servers.filter(({ status }) => status === "ready").length;
  const failed = servers.filter(({ status }) => status === "error").length;
  const attention = servers.filter(needsAttention);
  return (
    <div role="status" aria-label={t("health.title")} className="flex min-w-0 items-center gap-2 text-sm text-soft">
      {servers.length > 0 && <span className="whitespace-nowrap max-sm:sr-only">{t("health.up", { count: up })}</span>}
      {failed > 0 && (
        <Link href="/?status=error" className="link whitespace-nowrap text-bad max-sm:hidden">
          {t("health.failed", { count: failed })}
        </Link>
      )}
      {attention.length > 0 && <AttentionLink servers={attention} />}
    </div>
  );
}

/** One server is named and linked to; more of them are a filter of the list. */
function AttentionLink({ servers }: { servers: ServerView[] }) {
  const { t } = useTranslation();
  const [only] = servers;
  const words =
    servers.length === 1 && only
      ? t("health.one", { name: only.name, word: attentionWord(only, t) })
      : t("health.many", { count: servers.length });
  return (
    <Link
      href={servers.length === 1 && only ? serverHref(only.name) : "/?status=attention"}
      className="link inline-flex min-w-0 items-center gap-1.5 text-warn"
    >
      <TriangleAlert size={15} className="flex-none" aria-hidden />
      <span className="truncate">{words}</span>
    </Link>
  );
}

// All environments of this user, by repository, and the programs that they and servers need.
import { useQuery } from "@tanstack/react-query";
import { Boxes } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useAway } from "../api/connection";
import type { RepositoryView } from "../api/schema";
import { Alert, FailureAlert } from "../ui/alert";
import { CopyButton } from "../ui/copy-button";
import { tidyJson } from "../ui/format";
import { PageHead } from "../ui/page";
import { Sentence } from "../ui/sentence";
import { EmptyState, Loading } from "../ui/states";
import { DestroyDialog } from "./destroy-dialog";
import { DiffDialog } from "./diff-dialog";
import { type Asked, EnvironmentCard } from "./environment-card";
import { HostCheck } from "./host-check";
import { LogDialog } from "./log-dialog";
import { environmentsQuery } from "./queries";
import { Secrets } from "./secrets";

export default function EnvironmentsPage() {
  const { t } = useTranslation();
  const query = useQuery(environmentsQuery);
  const away = useAway();
  const [asked, ask] = useState<Asked | null>(null);
  const close = () => ask(null);
  return (
    <>
      <PageHead title={t("environments.title")} />
      {query.isError && !query.data && (
        <FailureAlert title={t("environments.failed")} failure={query.error} retry={() => void query.refetch()} />
      )}
      {query.isPending && <Loading label={t("app.loading")} />}
      {query.data && (
        <div className={`space-y-6 ${away ? "stale" : ""}`}>
          {query.data.length === 0 && <HowToBegin />}
          {usedFirst(query.data).map((repository) => (
            <Repository key={repository.path} repository={repository} now={query.dataUpdatedAt} onAsk={ask} />
          ))}
        </div>
      )}
      <HostCheck />
      {asked?.what === "log" && <LogDialog place={asked.place} onClose={close} />}
      {asked?.what === "diff" && <DiffDialog place={asked.place} onClose={close} />}
      {asked?.what === "destroy" && <DestroyDialog place={asked.place} onClose={close} />}
    </>
  );
}

/** Those that have environments, then the others, each by path. */
const usedFirst = (all: readonly RepositoryView[]) =>
  all.toSorted((a, b) => Number(b.environments.length > 0) - Number(a.environments.length > 0));

type RepositoryProps = { repository: RepositoryView; now: number; onAsk: (asked: Asked) => void };

function Repository({ repository: { path, environments, secrets = [], error }, now, onAsk }: RepositoryProps) {
  const { t } = useTranslation();
  return (
    <section aria-label={t("environments.repository", { path })}>
      <h2 className="mb-2 flex flex-wrap items-baseline gap-x-2">
        <span className="text-lg font-semibold">{path.split("/").findLast(Boolean) ?? path}</span>
        <code className="text-sm text-soft">{path}</code>
      </h2>
      {error && (
        <Alert title={t("environments.repositoryFailed")}>
          <Sentence text={error.message} />
          <Sentence text={error.hint} className="text-soft" />
        </Alert>
      )}
      <Secrets repository={path} secrets={secrets} />
      {!error && environments.length === 0 && (
        <p className="card p-4 text-soft">
          {t("environments.noneHere")} <code>cofer mcp environments</code>
        </p>
      )}
      {environments.length > 0 && (
        <ul className="grid items-start gap-3 lg:grid-cols-2" aria-label={t("environments.listOf", { path })}>
          {environments.map((environment) => (
            <EnvironmentCard key={environment.id} place={{ repository: path, environment }} now={now} onAsk={onAsk} />
          ))}
        </ul>
      )}
    </section>
  );
}

/** For a client's configuration. */
const CLIENT_ENTRY = tidyJson({ mcpServers: { environments: { command: "cofer", args: ["mcp", "environments"] } } });

function HowToBegin() {
  const { t } = useTranslation();
  return (
    <div className="card">
      <EmptyState icon={<Boxes size={28} aria-hidden />} title={t("environments.none")}>
        <p>{t("environments.noneHint")}</p>
        <ol className="mt-5 space-y-4 text-left text-ink">
          <Step n={1} text={t("environments.stepInit")} code="cofer init" />
          <Step n={2} text={t("environments.stepClient")} code={CLIENT_ENTRY} />
          <Step n={3} text={t("environments.stepAsk")} />
        </ol>
      </EmptyState>
    </div>
  );
}

function Step({ n, text, code }: { n: number; text: string; code?: string }) {
  return (
    <li className="flex gap-3">
      <span className="tag size-6 flex-none justify-center rounded-full text-sm" aria-hidden>
        {n}
      </span>
      <div className="min-w-0 flex-1">
        <p>{text}</p>
        {code && (
          <div className="mt-1.5 flex items-start gap-1.5">
            <pre className="code-block min-w-0 flex-1">{code}</pre>
            <CopyButton text={code} iconOnly />
          </div>
        )}
      </div>
    </li>
  );
}

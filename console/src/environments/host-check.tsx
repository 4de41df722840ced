// Which programs the daemon finds, and of which version: what `cofer doctor` prints, too.
import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleDashed, RefreshCw, TriangleAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { ProgramView } from "../api/schema";
import { FailureAlert } from "../ui/alert";
import { Loading } from "../ui/states";
import { ProviderList } from "./provider-list";
import { hostQuery } from "./queries";

/** Purposes in the reader's language, for programs that have one here. */
const KNOWN = ["git", "podman", "runsc", "node", "npx", "uvx", "python3"] as const;

export function HostCheck() {
  const { t } = useTranslation();
  const query = useQuery(hostQuery);
  return (
    <section className="mt-8" aria-labelledby="host-check">
      <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
        <h2 id="host-check" className="text-lg font-semibold">
          {t("host.title")}
        </h2>
        <button
          type="button"
          className="btn btn-small"
          onClick={() => void query.refetch()}
          disabled={query.isFetching}
          aria-busy={query.isFetching}
        >
          <RefreshCw size={14} className={query.isFetching ? "spin" : ""} aria-hidden />
          {t("host.again")}
        </button>
      </div>
      <p className="mb-3 text-soft">
        {t("host.hint")} <code>cofer doctor</code>
      </p>
      {query.isPending && <Loading label={t("host.looking")} />}
      {query.isError && !query.data && (
        <FailureAlert title={t("host.failed")} failure={query.error} retry={() => void query.refetch()} />
      )}
      {query.data && (
        <>
          <div className="card overflow-hidden">
            <table role="table" aria-label={t("host.table")} className="block w-full md:table">
              <thead role="rowgroup" className="max-md:sr-only">
                <tr role="row" className="bg-sunken text-left text-sm text-soft">
                  {(["program", "state", "version", "path"] as const).map((column) => (
                    <th key={column} role="columnheader" scope="col" className="px-3 py-2 font-medium">
                      {t(`host.${column}`)}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody role="rowgroup" className="block md:table-row-group">
                {query.data.programs.map((program) => (
                  <Program key={program.name} program={program} />
                ))}
              </tbody>
            </table>
          </div>
          <ProviderList providers={query.data.providers ?? []} />
          <details className="mt-2 text-sm text-soft">
            <summary>{t("host.searched")}</summary>
            <code>{query.data.path}</code>
          </details>
        </>
      )}
    </section>
  );
}

function Program({ program }: { program: ProgramView }) {
  const { t } = useTranslation();
  const { name, purpose, path, version } = program;
  const known = KNOWN.find((word) => word === name);
  return (
    <tr
      role="row"
      className="grid grid-cols-[1fr_auto] gap-x-3 border-t border-line p-3 first:border-t-0 md:table-row md:p-0 md:first:border-t"
    >
      <th role="rowheader" scope="row" className="text-left font-semibold md:px-3 md:py-2" aria-label={name}>
        {name}
        <span className="block text-sm font-normal text-soft">{known ? t(`host.purposes.${known}`) : purpose}</span>
      </th>
      <td role="cell" className="md:px-3 md:py-2">
        <Found path={path ?? null} version={version ?? null} />
      </td>
      <td role="cell" className="md:px-3 md:py-2">
        {version ?? <span className="text-soft max-md:hidden">–</span>}
      </td>
      <td role="cell" className="col-span-2 min-w-0 md:px-3 md:py-2">
        {path ? <code className="text-soft">{path}</code> : <span className="text-soft max-md:hidden">–</span>}
      </td>
    </tr>
  );
}

function Found({ path, version }: { path: string | null; version: string | null }) {
  const { t } = useTranslation();
  const [tone, Icon, word] =
    path === null
      ? (["text-soft", CircleDashed, t("host.missing")] as const)
      : version === null
        ? (["text-warn", TriangleAlert, t("host.broken")] as const)
        : (["text-ok", CircleCheck, t("host.found")] as const);
  return (
    <span className={`inline-flex items-center gap-1.5 whitespace-nowrap ${tone}`}>
      <Icon size={14} aria-hidden />
      {word}
    </span>
  );
}

// What an import would do, server by server, before it does anything.
import { useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { request } from "../../api/client";
import { serversQuery } from "../../api/queries";
import type { ImportedServer, Validation } from "../../api/schema";
import { FailureAlert } from "../../ui/alert";
import { shellLine } from "../../ui/format";
import { Sentence } from "../../ui/sentence";
import { type Action, type PlannedServer, freeName, registrationOf } from "./import-plan";
import { translate, warningWords } from "./check";
import { type Choice, useImport } from "./use-import";

type Props = { servers: PlannedServer[]; onBack: () => void; onImported: (results: ImportedServer[]) => void };

export function ImportPreview({ servers, onBack, onImported }: Props) {
  const { t } = useTranslation();
  const existing = useQuery(serversQuery).data ?? [];
  const taken = (name: string) => existing.some((server) => server.name === name);
  const checks = useQueries({ queries: servers.map((server) => checkQuery(server)) });
  const [chosen, setChosen] = useState<Record<number, Choice>>({});
  const choices = servers.map(
    (server, index) => chosen[index] ?? usualChoice(server, taken(server.name), checks[index]?.data),
  );
  const run = useImport(onImported);
  const count = choices.filter(({ action }) => action !== "skip").length;
  return (
    <div className="space-y-3">
      {run.isError && <FailureAlert title={t("paste.unreachable")} failure={run.error} />}
      <div className="overflow-x-auto">
        <table aria-label={t("paste.table")} className="w-full text-left">
          <thead className="text-sm text-soft">
            <tr className="border-b border-line">
              {[t("paste.server"), t("paste.runs"), t("paste.action")].map((title) => (
                <th key={title} scope="col" className="py-1.5 pr-3 font-medium">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {servers.map((server, index) => (
              // The same name may stand there twice.
              <Row
                key={index}
                server={server}
                taken={taken}
                choice={choices[index]!}
                validation={checks[index]?.data}
                onChange={(choice) => setChosen({ ...chosen, [index]: choice })}
              />
            ))}
          </tbody>
        </table>
      </div>
      {count === 0 && <p className="text-sm text-soft">{t("paste.noneChosen")}</p>}
      <div className="flex flex-wrap justify-end gap-2">
        <button type="button" className="btn" onClick={onBack}>
          {t("paste.back")}
        </button>
        <button
          type="button"
          className="btn btn-primary"
          disabled={count === 0 || run.isPending}
          aria-busy={run.isPending}
          onClick={() => run.mutate({ servers, choices })}
        >
          {t("paste.go", { n: count })}
        </button>
      </div>
    </div>
  );
}

/** What nobody chose otherwise: a server that is there already, or cannot be saved, is left out. */
function usualChoice(server: PlannedServer, taken: boolean, validation: Validation | undefined): Choice {
  const refused = validation?.errors.some(({ blocking, field }) => blocking && field !== "name");
  return { action: server.unfit || taken || refused ? "skip" : "import", name: server.name };
}

/** The daemon's opinion of a server of the plan. */
function checkQuery(server: PlannedServer) {
  const body = registrationOf(server);
  return {
    queryKey: ["validate", body],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      request<Validation>("/mcp/validate", { method: "POST", body, signal }),
    enabled: server.unfit === null,
    staleTime: 30_000,
  };
}

type RowProps = {
  server: PlannedServer;
  taken: (name: string) => boolean;
  choice: Choice;
  validation: Validation | undefined;
  onChange: (choice: Choice) => void;
};

function Row({ server, taken, choice, validation, onChange }: RowProps) {
  const { t } = useTranslation();
  const { name, unfit } = server;
  const exists = taken(name);
  const actions: Action[] = unfit ? ["skip"] : exists ? ["skip", "rename", "overwrite"] : ["import", "rename", "skip"];
  const choose = (action: Action) =>
    onChange({ action, name: action === "rename" && taken(choice.name) ? freeName(name, taken) : choice.name });
  const errors = (validation?.errors ?? []).filter(({ field }) => field !== "name");
  return (
    <tr className="border-b border-line align-top">
      <th scope="row" className="py-2 pr-3 font-semibold">
        {name}
      </th>
      <td className="py-2 pr-3">
        <code className="text-sm text-soft">{shellLine(server.argv)}</code>
        <ul className="text-sm">
          {unfit && <li className="text-bad">{t(`paste.${unfit}`)}</li>}
          {exists && <li className="text-warn">{t("paste.exists")}</li>}
          {errors.map((error) => (
            <li key={error.field + error.message} className={error.blocking ? "text-bad" : "text-warn"}>
              <Sentence text={translate(error, t)} />
            </li>
          ))}
          {validation?.warnings.map((warning) => (
            <li key={warning.field} className="text-warn">
              <Sentence text={warningWords(warning.message, t)} />
            </li>
          ))}
        </ul>
      </td>
      <td className="space-y-1 py-2">
        <select
          className="input"
          aria-label={t("paste.actionFor", { name })}
          value={choice.action}
          onChange={(event) => choose(event.target.value as Action)}
        >
          {actions.map((action) => (
            <option key={action} value={action}>
              {t(`paste.${action}`)}
            </option>
          ))}
        </select>
        {choice.action === "rename" && (
          <input
            className="input"
            aria-label={t("paste.newName", { name })}
            value={choice.name}
            onChange={(event) => onChange({ ...choice, name: event.target.value })}
          />
        )}
      </td>
    </tr>
  );
}

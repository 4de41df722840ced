// Carries an import out: new servers in one request, those to be overwritten in another.
import { useMutation } from "@tanstack/react-query";
import { refreshServers } from "../../api/actions";
import { request } from "../../api/client";
import type { Imported, ImportedServer } from "../../api/schema";
import type { Action, PlannedServer } from "./import-plan";

export type Choice = { action: Action; name: string };
type Order = { servers: PlannedServer[]; choices: Choice[] };

export function useImport(onImported: (results: ImportedServer[]) => void) {
  return useMutation({
    mutationFn: carryOut,
    onSuccess: onImported,
    onSettled: refreshServers,
  });
}

async function carryOut({ servers, choices }: Order): Promise<ImportedServer[]> {
  const chosen = servers.map((server, index) => ({ server, choice: choices[index]! }));
  const fresh = chosen.filter(({ choice }) => choice.action === "import" || choice.action === "rename");
  const old = chosen.filter(({ choice }) => choice.action === "overwrite");
  return [...(await importAll(fresh, "/mcp/import")), ...(await importAll(old, "/mcp/import?overwrite=true"))];
}

/** The daemon maps the fields of the configuration, so that nothing of it is lost on the way. */
async function importAll(chosen: { server: PlannedServer; choice: Choice }[], path: string): Promise<ImportedServer[]> {
  if (chosen.length === 0) return [];
  const mcpServers = Object.fromEntries(
    chosen.map(({ server, choice }) => [choice.action === "rename" ? choice.name : server.name, server.source]),
  );
  return (await request<Imported>(path, { method: "POST", body: { mcpServers } })).servers;
}

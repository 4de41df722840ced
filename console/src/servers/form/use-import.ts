// Carries an import out: new servers in one call, those to be overwritten each by a change.
import { useMutation } from "@tanstack/react-query";
import { refreshServers } from "../../api/actions";
import { ApiFailure, request } from "../../api/client";
import { serverPath } from "../../api/queries";
import type { Imported, ImportedServer, ServerView } from "../../api/schema";
import { type Action, type PlannedServer, registrationOf } from "./import-plan";

export type Choice = { action: Action; name: string };
type Order = { servers: PlannedServer[]; choices: Choice[] };

export function useImport(existing: readonly ServerView[], onImported: (results: ImportedServer[]) => void) {
  return useMutation({
    mutationFn: (order: Order) => carryOut(order, existing),
    onSuccess: onImported,
    onSettled: refreshServers,
  });
}

async function carryOut({ servers, choices }: Order, existing: readonly ServerView[]): Promise<ImportedServer[]> {
  const chosen = servers.map((server, index) => ({ server, choice: choices[index]! }));
  const fresh = chosen.filter(({ choice }) => choice.action === "import" || choice.action === "rename");
  const results: ImportedServer[] = [];
  if (fresh.length > 0) {
    const mcpServers = Object.fromEntries(
      fresh.map(({ server, choice }) => [choice.action === "rename" ? choice.name : server.name, server.source]),
    );
    results.push(...(await request<Imported>("/mcp/import", { method: "POST", body: { mcpServers } })).servers);
  }
  for (const { server } of chosen.filter(({ choice }) => choice.action === "overwrite")) {
    const old = existing.find(({ name }) => name === server.name);
    if (old) results.push(await overwrite(old, server));
  }
  return results;
}

async function overwrite(old: ServerView, server: PlannedServer): Promise<ImportedServer> {
  const { name } = server;
  try {
    const nothing = { command: null, image: null, url: null, args: null };
    const view = await request<ServerView>(serverPath(old.id), {
      method: "PATCH",
      body: { ...nothing, ...registrationOf(server) },
    });
    return { name, status: "imported", warnings: [], server: view };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return { name, status: "failed", reason: error.message, warnings: [] };
  }
}

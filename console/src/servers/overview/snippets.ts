// What a client is told to reach Cofer's gateway. Without the token, unless that is asked for.
import { shellWord, tidyJson } from "../../ui/format";

/** What a snippet is made for: one server, or all of them where there is no name. */
export type Target = { origin: string; server: string | null; token: string | null };

export type Snippet = { client: "connect" | "claude" | "cursor" | "vscode"; file: string | null; text: string };

/** `/mcp/NAME` is one server, `/mcp` all of them. */
export function endpointOf({ origin, server }: Pick<Target, "origin" | "server">): string {
  return server === null ? `${origin}/mcp` : `${origin}/mcp/${encodeURIComponent(server)}`;
}

/** Clients take fewer characters in a name than Cofer does. */
export function clientName(server: string | null): string {
  const name = (server ?? "cofer").replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "");
  return name === "" ? "cofer" : name;
}

export function snippetsFor(target: Target): Snippet[] {
  const { server, token } = target;
  const [url, name] = [endpointOf(target), clientName(server)];
  // Each client has its own word for a variable of the environment.
  const bearer = (placeholder: string) => ({ Authorization: `Bearer ${token ?? placeholder}` });
  const args = server === null ? ["connect"] : ["connect", server];
  const header = `Authorization: Bearer ${token ?? "$COFER_TOKEN"}`;
  const input = { type: "promptString", id: "cofer-token", description: "Cofer access token", password: true };
  return [
    { client: "connect", file: null, text: tidyJson({ mcpServers: { [name]: { command: "cofer", args } } }) },
    {
      client: "claude",
      file: null,
      text: `claude mcp add --transport http ${name} ${shellWord(url)} --header "${header}"`,
    },
    {
      client: "cursor",
      file: ".cursor/mcp.json",
      text: tidyJson({ mcpServers: { [name]: { url, headers: bearer("${env:COFER_TOKEN}") } } }),
    },
    {
      client: "vscode",
      file: ".vscode/mcp.json",
      text: tidyJson({
        ...(token === null ? { inputs: [input] } : {}),
        servers: { [name]: { type: "http", url, headers: bearer("${input:cofer-token}") } },
      }),
    },
  ];
}

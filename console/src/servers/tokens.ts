// The estimated tokens of a server's tool definitions, as the chat counts them: the daemon's number,
// so that no two pages disagree.
import { useQuery } from "@tanstack/react-query";
import type { ServerView } from "../api/schema";
import { offerQuery } from "../chat/api";

export function useTokens(server: ServerView): number | undefined {
  const ready = server.status === "ready";
  const offer = useQuery({ ...offerQuery([server.name], []), enabled: ready, placeholderData: undefined }).data;
  return ready ? offer?.servers.find((other) => other.server === server.name)?.estimated_tokens : undefined;
}

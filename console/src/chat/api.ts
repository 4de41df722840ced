// What the chat and the settings of its models ask the daemon.
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { API, ApiFailure, authorized, failureOf, request } from "../api/client";
import { queryClient } from "../api/queries";
import type {
  ConversationPage,
  ConversationSummary,
  ModelList,
  ProviderBody,
  ProviderTest,
  ProviderView,
  ProvidersView,
  QuestionReply,
  Stopped,
  ToolsView,
  TurnRequest,
} from "../api/schema";
import type { Conversation, ToolCall } from "./types";

const PAGE = 50;

export const conversationPath = (id: string) => `/chat/conversations/${encodeURIComponent(id)}`;
const providerPath = (id: string) => `/chat/providers/${encodeURIComponent(id)}`;

/** No event tells of conversations that others begin or end, hence the poll. */
export const conversationsQuery = (search: string) =>
  infiniteQueryOptions({
    queryKey: ["conversations", search],
    queryFn: ({ signal, pageParam }) => {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (search) query.set("search", search);
      if (pageParam) query.set("before", pageParam);
      return request<ConversationPage>(`/chat/conversations?${query}`, { signal });
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval: 15_000,
  });

export const refreshConversations = () => queryClient.invalidateQueries({ queryKey: ["conversations"] });

export const providersQuery = queryOptions({
  queryKey: ["providers"],
  queryFn: ({ signal }) => request<ProvidersView>("/chat/providers", { signal }),
  staleTime: 30_000,
});

/** What a provider offers. It is asked over the network, hence seldom. */
export const modelsQuery = (provider: string) =>
  queryOptions({
    queryKey: ["models", provider],
    queryFn: ({ signal }) => request<ModelList>(`/chat/models?provider=${encodeURIComponent(provider)}`, { signal }),
    staleTime: 5 * 60_000,
    refetchOnWindowFocus: false,
    retry: false,
  });

export const offerQuery = (servers: readonly string[] | null, off: readonly string[]) =>
  queryOptions({
    queryKey: ["chat-tools", servers, off],
    queryFn: ({ signal }): Promise<ToolsView> => {
      const query = new URLSearchParams();
      // None is said by an empty one.
      for (const server of servers?.length === 0 ? [""] : (servers ?? [])) query.append("servers", server);
      for (const tool of off) query.append("tools_off", tool);
      return request<ToolsView>(`/chat/tools?${query}`, { signal });
    },
    staleTime: 10_000,
    placeholderData: keepPreviousData,
  });

export const readConversation = (id: string, signal?: AbortSignal) =>
  request<Conversation>(conversationPath(id), signal ? { signal } : {});

/** The messages before this one. */
export const readEarlier = (id: string, before: string) =>
  request<Conversation>(`${conversationPath(id)}?before=${encodeURIComponent(before)}`);

/** A card with its whole result. */
export const wholeCallQuery = (conversation: string, call: string) =>
  queryOptions({
    queryKey: ["whole-call", conversation, call],
    queryFn: ({ signal }) =>
      request<ToolCall>(`${conversationPath(conversation)}/calls/${encodeURIComponent(call)}`, { signal }),
    staleTime: Infinity,
    gcTime: 60_000,
    refetchOnWindowFocus: false,
  });

export const rename = (id: string, title: string) =>
  request<ConversationSummary>(conversationPath(id), { method: "PATCH", body: { title } });
export const remove = (id: string) => request<void>(conversationPath(id), { method: "DELETE" });
export const answerQuestion = (id: string, question: string, reply: QuestionReply) =>
  request<void>(`${conversationPath(id)}/questions/${encodeURIComponent(question)}`, { method: "POST", body: reply });
export const stopTurn = (id: string) => request<Stopped>(`${conversationPath(id)}/stop`, { method: "POST" });

/** Begins a turn and gives back the id of its conversation. The answer streams its events; the
 *  page follows the conversation instead, as every other page that shows it does. */
export async function beginTurn(turn: TurnRequest): Promise<string> {
  const answer = await fetch(`${API}/chat`, {
    method: "POST",
    headers: authorized({ "Content-Type": "application/json", Accept: "text/event-stream" }),
    body: JSON.stringify(turn),
    credentials: "omit",
    cache: "no-store",
  }).catch(() => {
    throw new ApiFailure("unreachable", 0, "the daemon did not answer");
  });
  if (!answer.ok) throw await failureOf(answer);
  const id = answer.headers.get("x-conversation-id") ?? turn.conversation_id;
  await answer.body?.cancel().catch(() => {});
  if (!id) throw new ApiFailure("internal", answer.status, "the answer names no conversation");
  return id;
}

/** The conversation as a file. */
export async function exported(id: string, format: "json" | "markdown"): Promise<Blob> {
  const answer = await fetch(`${API}${conversationPath(id)}/export?format=${format}`, {
    headers: authorized(),
    credentials: "omit",
    cache: "no-store",
  }).catch(() => {
    throw new ApiFailure("unreachable", 0, "the daemon did not answer");
  });
  if (!answer.ok) throw await failureOf(answer);
  return answer.blob();
}

export const saveProvider = (id: string, body: ProviderBody) =>
  request<ProviderView>(providerPath(id), { method: "PUT", body });
export const removeProvider = (id: string) => request<void>(providerPath(id), { method: "DELETE" });
/** Tries a provider, with changes that are not saved where there are any. */
export const testProvider = (id: string, body: ProviderBody) =>
  request<ProviderTest>(`${providerPath(id)}/test`, { method: "POST", body });

export async function refreshProviders(): Promise<void> {
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: ["providers"] }),
    queryClient.invalidateQueries({ queryKey: ["models"] }),
  ]);
}

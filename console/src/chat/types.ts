// What the daemon says about conversations. Answers have the types of its API; events and the
// contents of results are told apart here.
import type { ContentBlock, ResourceContents } from "../api/mcp";
import type * as api from "../api/schema";

/** A tool's result, or what `resources/read` and `resources/list` gave. It comes from servers that
 *  may say anything. */
export type CallContent = {
  content?: ContentBlock[];
  structuredContent?: unknown;
  isError?: boolean;
  contents?: ResourceContents[];
  resources?: unknown[];
};

/** What of a call a card shows. */
export type ToolCall = Omit<api.ToolCard, "result" | "name" | "model_call_id"> & { result?: CallContent | null };
export type CallStatus = api.CallStatus;

/** What a server wants to know before its call goes on. */
export type Question = api.Question;

export type UserMessage = api.UserMessage & { role: "user" };
export type AssistantMessage = Omit<api.AssistantMessage, "tool_calls" | "provider" | "model"> & {
  role: "assistant";
  tool_calls: ToolCall[];
};
export type Notice = api.NoticeMessage & { role: "notice" };
export type Message = UserMessage | AssistantMessage | Notice;
export type Conversation = Omit<api.ConversationView, "messages"> & { messages: Message[] };

/** The model is asked again after a while. */
export type Retrying = { attempt: number; of: number; after_ms: number; kind: string; message: string };

type In<T> = T & { conversation_id: string; turn_id: string };

/** Every event of a conversation, by its name. */
export type ChatEvents = {
  turnStarted: In<{
    action: api.Action;
    message?: api.UserMessage | null;
    title: string;
    provider?: string | null;
    model?: string | null;
    at: string;
  }>;
  messageStarted: In<{ message_id: string; step: number; at: string }>;
  textDelta: In<{ message_id: string; delta: string }>;
  reasoningDelta: In<{ message_id: string; delta: string }>;
  toolCallStarted: In<
    { message_id: string; at: string } & Pick<ToolCall, "call_id" | "n" | "server" | "tool" | "title" | "arguments">
  >;
  toolCallFinished: In<{ message_id: string; at: string } & Omit<ToolCall, "title" | "arguments" | "started_at">>;
  messageFinished: In<{ message_id: string; state: "complete" | "stopped" | "error"; text: string; at: string }>;
  questionAsked: In<Question>;
  questionClosed: In<{ question_id: string; call_id: string }>;
  retrying: In<Retrying>;
  limitReached: In<{ steps: number; limit: number }>;
  turnError: In<api.ModelFailure>;
  turnFinished: In<{ reason: "done" | "limit" | "stopped" | "error"; steps: number; at: string }>;
  conversationChanged: In<{ title: string }>;
};

export type ChatEvent = {
  [Name in keyof ChatEvents]: { id: string | null; event: Name; data: ChatEvents[Name] };
}[keyof ChatEvents];

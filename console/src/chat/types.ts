// What the daemon says about conversations: the shapes of the chat's answers and events.
import type { ContentBlock, ResourceContents } from "../api/mcp";

/** How a tool call ended; also that it never reached a server. */
export type CallOutcome =
  | "ok"
  | "tool_error"
  | "mcp_error"
  | "timeout"
  | "disconnected"
  | "too_large"
  | "overloaded"
  | "cancelled"
  | "not_connected"
  | "not_found"
  | "bad_arguments";

export type CallStatus = "running" | "done" | "error" | "cancelled";

/** A tool's result, or what `resources/read` and `resources/list` gave. */
export type CallContent = {
  content?: ContentBlock[];
  structuredContent?: unknown;
  isError?: boolean;
  contents?: ResourceContents[];
  resources?: unknown[];
};

export type CallError = { message: string; stack?: string | null; code?: number | null };

export type ToolCall = {
  call_id: string;
  /** Counts over the whole conversation, from 1. */
  n: number;
  server: string;
  tool: string;
  title?: string | null;
  arguments: unknown;
  status: CallStatus;
  outcome?: CallOutcome | null;
  result?: CallContent | null;
  result_bytes: number;
  /** The result is cut; `calls/{call_id}` has the whole. */
  truncated: boolean;
  error?: CallError | null;
  started_at: string;
  duration_ms?: number | null;
  /** The flight recorder has it. */
  recorded: boolean;
};

/** Why a turn or a provider failed. */
export type ChatProblem = { kind: string; message: string; hint?: string | null; retry_after?: number | null };

export type UserMessage = { id: string; turn_id: string; role: "user"; at: string; text: string };

export type AssistantMessage = {
  id: string;
  turn_id: string;
  role: "assistant";
  at: string;
  step: number;
  state: "streaming" | "complete" | "stopped" | "error" | "interrupted";
  text: string;
  reasoning?: string | null;
  provider?: string | null;
  model?: string | null;
  tool_calls: ToolCall[];
};

export type Notice = { id: string; turn_id: string; role: "notice"; at: string } & (
  { notice: "limit"; steps: number; limit: number } | { notice: "error"; error: ChatProblem } | { notice: "stopped" }
);

export type Message = UserMessage | AssistantMessage | Notice;

export type ConversationSummary = {
  id: string;
  title: string;
  provider?: string | null;
  model?: string | null;
  running: boolean;
  message_count: number;
  created_at: string;
  updated_at: string;
};

export type ConversationPage = { conversations: ConversationSummary[]; next?: string | null; total: number };

export type Offered = {
  tools: number;
  servers: string[];
  estimated_tokens: number;
  unavailable: { server: string; reason: string }[];
};

export type Conversation = ConversationSummary & {
  /** Null: all that are connected. */
  servers?: string[] | null;
  tools_off: string[];
  turn_id?: string | null;
  last_event_id: string;
  can_continue: boolean;
  /** There are messages before these. */
  earlier?: boolean;
  messages: Message[];
};

type In<T> = T & { conversation_id: string; turn_id: string };

/** Every event of a conversation, by its name. */
export type ChatEvents = {
  turnStarted: In<{
    action: "message" | "continue" | "answer_now";
    message?: Omit<UserMessage, "turn_id"> | null;
    title: string;
    provider?: string | null;
    model?: string | null;
    at: string;
  }>;
  toolsOffered: In<Offered>;
  messageStarted: In<{ message_id: string; step: number; at: string }>;
  textDelta: In<{ message_id: string; delta: string }>;
  reasoningDelta: In<{ message_id: string; delta: string }>;
  toolCallStarted: In<
    { message_id: string; at: string } & Pick<ToolCall, "call_id" | "n" | "server" | "tool" | "title" | "arguments">
  >;
  toolCallFinished: In<
    { message_id: string; at: string } & Pick<
      ToolCall,
      | "call_id"
      | "n"
      | "server"
      | "tool"
      | "status"
      | "outcome"
      | "result"
      | "result_bytes"
      | "truncated"
      | "error"
      | "duration_ms"
      | "recorded"
    >
  >;
  messageFinished: In<{ message_id: string; state: "complete" | "stopped" | "error"; text: string; at: string }>;
  retrying: In<Retrying>;
  limitReached: In<{ steps: number; limit: number }>;
  turnError: In<ChatProblem>;
  turnFinished: In<{ reason: "done" | "limit" | "stopped" | "error"; steps: number; at: string }>;
  conversationChanged: In<{ title: string }>;
};

/** The model is asked again after a while. */
export type Retrying = { attempt: number; of: number; after_ms: number; kind: string; message: string };

export type ChatEvent = {
  [Name in keyof ChatEvents]: { id: string | null; event: Name; data: ChatEvents[Name] };
}[keyof ChatEvents];

export type ProviderKind = {
  kind: string;
  name: string;
  base_url: string;
  needs_key: boolean;
  environment: string[];
};

export type Provider = {
  id: string;
  kind: string;
  name: string;
  source: "environment" | "settings";
  base_url: string;
  has_key: boolean;
  default_model?: string | null;
  is_default: boolean;
  overrides_environment: boolean;
};

export type Providers = {
  configured: boolean;
  default?: { provider: string; model?: string | null } | null;
  providers: Provider[];
  kinds: ProviderKind[];
};

export type ProviderChange = {
  kind?: string;
  name?: string;
  base_url?: string;
  /** Missing keeps the stored one, an empty one removes it. */
  api_key?: string;
  default_model?: string;
  is_default?: boolean;
};

export type ProviderTest = {
  ok: boolean;
  model?: string | null;
  duration_ms: number;
  models?: number | null;
  message?: string | null;
  error?: ChatProblem | null;
};

export type Models = { provider: string; models: string[]; default?: string | null };

export type OfferedTool = {
  server: string;
  tool: string;
  name: string;
  title?: string | null;
  description?: string | null;
  kind: "tool" | "resource";
  off: boolean;
  estimated_tokens: number;
};

export type OfferedServer = {
  server: string;
  status: string;
  tools: number;
  estimated_tokens: number;
  include_resources: boolean;
  error?: string | null;
};

export type ToolOffer = { tools: OfferedTool[]; servers: OfferedServer[]; estimated_tokens: number };

// The nouns of the daemon's API. Made by `npm run types` from openapi/cofer.json; not to be edited.

/** What a turn begins with. */
export type Action = "message" | "continue" | "answer_now";

/** One recent call. */
export type ActivityEntry = {
  /** The call. */
  call_id: string;
  /** Who called, where it is known. */
  client?: string | null;
  /** How long it took. */
  duration_ms: number;
  /** The failure's message, where it failed. */
  error?: string | null;
  /** The JSON-RPC method. */
  method: string;
  /** How it ended. */
  outcome: Outcome;
  /** Whether its request and its answer are still there to be looked at. */
  recorded?: boolean;
  /** Bytes of the request's params. */
  request_bytes: number;
  /** Bytes of the answer. */
  response_bytes: number;
  /** Its name at that time. */
  server: string;
  /** The server. */
  server_id: ServerId;
  /** By which way it came. */
  source?: CallSource;
  /** Where the time went. */
  stages: Stages;
  /** When it began. */
  started_at: string;
  /** The tool, for `tools/call`. */
  tool?: string | null;
};

/** Recent calls, newest first. */
export type ActivityPage = {
  /** Newest first. */
  calls: (ActivityEntry)[];
};

/** One answer of the model: a step of a turn. */
export type AssistantMessage = {
  /** When it began. */
  at: string;
  /** The message. */
  id: string;
  /** The model that answered. */
  model: string;
  /** The provider that was asked. */
  provider: string;
  /** What it thought, where it shows that. */
  reasoning?: string | null;
  /** How far it is. */
  state: AssistantState;
  /** The step of the turn, from 1. */
  step: number;
  /** What it says. */
  text: string;
  /** The tools it called, in its order. */
  tool_calls: (ToolCard)[];
  /** Its turn. */
  turn_id: string;
};

/** How far an answer is. */
export type AssistantState = "streaming" | "complete" | "stopped" | "error" | "interrupted";

/** What a call asks for. */
export type CallBody = {
  /** The JSON-RPC method, such as `tools/call`. */
  method: string;
  /** Its params: an object or an array, passed on as they are. */
  params?: Record<string, unknown> | null;
  /** How long the server may be silent; the server's `call_timeout_ms` where it is missing. */
  timeout_ms?: number | null;
};

/** How a call ended. */
export type CallEnd = "ok" | "tool_error" | "mcp_error" | "timeout" | "disconnected" | "too_large" | "overloaded" | "cancelled" | "not_connected" | "not_found" | "bad_arguments";

/** What a call gives back. */
export type CallResult = {
  /** The JSON-RPC result, as the server sent it. */
  result: unknown;
};

/** By which way a call came. */
export type CallSource = "api" | "console" | "chat" | "gateway";

/** How far a call is. */
export type CallStatus = "running" | "done" | "error" | "cancelled";

/** A file that differs. */
export type ChangedFile = {
  /** Lines that were added; nothing where it is binary. */
  added?: number | null;
  /** Its path in the repository. */
  path: string;
  /** Lines that were removed; nothing where it is binary. */
  removed?: number | null;
};

/** Conversations, newest first. */
export type ConversationPage = {
  /** Newest first. */
  conversations: (ConversationSummary)[];
  /** For `before`, where there are more. */
  next?: string | null;
  /** How many there are, of those that the search finds. */
  total: number;
};

/** One conversation in a list. */
export type ConversationSummary = {
  /** When it began. */
  created_at: string;
  /** The conversation. */
  id: string;
  /** How many messages it has. */
  message_count: number;
  /** The model that was chosen for it. */
  model?: string | null;
  /** The provider that was chosen for it. */
  provider?: string | null;
  /** Whether a turn runs in it. */
  running: boolean;
  /** What it is called. */
  title: string;
  /** When something last happened in it. */
  updated_at: string;
};

/** One conversation with its messages. */
export type ConversationView = ConversationSummary & {
  /** Whether the last turn ended in a way after which the model can be asked to go on. */
  can_continue: boolean;
  /** Whether there are messages before these. */
  earlier: boolean;
  /** Where to go on listening with `events?after=`, without a gap. */
  last_event_id: string;
  /** Oldest first. */
  messages: (Message)[];
  /** What servers want to know of the person before their calls go on. */
  questions: (Question)[];
  /** The servers whose tools are offered; null for all. */
  servers?: (string)[] | null;
  /** Tools that are not offered, as `server/tool`. */
  tools_off: (string)[];
  /** The turn that runs. */
  turn_id?: string | null;
};

/** Who is asked where nobody is named. */
export type DefaultView = {
  model?: string | null;
  provider: string;
};

/** A command that was run in an environment. */
export type EnvironmentCommand = {
  /** When it ended; for one in the background, when it was started. */
  at: string;
  /** Whether it goes on while others run. */
  background: boolean;
  /** Its beginning, cut off where it is long. */
  command: string;
  /** How it ended; nothing where it runs, was ended by us, or went with its container. */
  exit_code?: number | null;
  /** The sort of failure, where it did not come to an end of its own. */
  failure?: string | null;
  /** Whether it runs now. */
  running: boolean;
};

/** What was taken away with an environment. */
export type EnvironmentDestroyed = {
  /** Whether the branch with its work is still there. */
  branch_kept: boolean;
  /** The environment. */
  environment_id: string;
  /** The paths that are gone. */
  removed_paths: (string)[];
  /** The ids of the containers that were removed. */
  stopped_containers: (string)[];
  /** How what ran in it ended: `graceful`, `forced` or `already_stopped`. */
  termination: string;
  /** What should be known although it succeeded. */
  warnings: (string)[];
};

/** What an environment changed since its beginning, as far as it is committed. */
export type EnvironmentDiff = {
  /** The files that differ. */
  files: (ChangedFile)[];
  /** As `git diff` writes it. */
  text: string;
  /** Whether there is more than is told. */
  truncated: boolean;
};

/** Every repository in which environments were used. */
export type EnvironmentList = {
  /** Sorted by path. */
  repositories: (RepositoryView)[];
};

/** What was done in an environment, the newest first. */
export type EnvironmentLog = {
  /** One for each commit since its beginning. */
  steps: (EnvironmentStep)[];
  /** Whether there are more than are told. */
  truncated: boolean;
};

/** A port in use. */
export type EnvironmentPort = {
  /** The port in the container. */
  container: number;
  /** The port on which it answers on this machine's loopback address. */
  host: number;
};

/** How an environment is. */
export type EnvironmentState = "running" | "stopped" | "creating" | "destroying" | "unfinished";

/** One commit of an environment. */
export type EnvironmentStep = {
  /** When it was made. */
  at: string;
  /** The command that changed something. */
  command?: string | null;
  /** The commit. */
  commit: string;
  /** How that command ended. */
  exit_code?: number | null;
  /** The first line of its message. */
  subject: string;
};

/** One environment. */
export type EnvironmentView = {
  /** The branch with its work, as git in the repository resolves it. */
  branch: string;
  /** Its last commands, the newest first. */
  commands: (EnvironmentCommand)[];
  /** Its container's name. */
  container: string;
  /** Its container's id, once it had one. */
  container_id?: string | null;
  /** When it was made. */
  created_at: string;
  /** Its id, unique in its repository. */
  id: string;
  /** Its container's image. */
  image: string;
  /** The isolation in force in its container, read from the kernel; absent if it does not run. */
  isolation?: Record<string, unknown> | null;
  /** Ports on which commands in the background answer. */
  ports: (EnvironmentPort)[];
  /** How it is. */
  state: EnvironmentState;
  /** What it was made for. */
  title: string;
  /** Its files. */
  worktree: string;
};

/** What every failed HTTP request is answered with. */
export type ErrorBody = {
  /** The failure. */
  error: ErrorDetail;
};

/** One failure, for programs and for people. */
export type ErrorDetail = {
  /** More, by kind. */
  details?: unknown;
  /** What to do next. */
  hint?: string | null;
  /** The sort of failure. */
  kind: ErrorKind;
  /** What was attempted and why it failed. */
  message: string;
  /** Stands in the daemon's log beside the same failure. */
  trace_id: string;
};

/** The sorts of failure an HTTP answer names. */
export type ErrorKind = "invalid_request" | "conflict" | "not_connected" | "not_found" | "mcp_error" | "timeout" | "too_large" | "overloaded" | "unauthorized" | "forbidden" | "method_not_allowed" | "store_unavailable" | "engine_unavailable" | "provider_error" | "internal";

/** What a file is to be. */
export type ExportFormat = "json" | "markdown";

/** Why a server is in `error`, for people: what happened, what to do, and the evidence. */
export type Failure = {
  /** The exit code, where it exited. */
  exit_code?: number | null;
  /** What to do about it. */
  hint: string;
  /** The sort of failure. */
  kind: FailureKind;
  /** What happened. */
  message: string;
  /** The signal that ended it, where one did. */
  signal?: number | null;
  /** The end of what it wrote to stderr. */
  stderr?: string | null;
};

/** Why a server is in `error`, in words a program can match. */
export type FailureKind = "command_not_found" | "spawn_failed" | "exited_early" | "start_timeout" | "handshake_failed" | "crashed" | "out_of_memory" | "engine_unavailable" | "disk_full" | "image_missing" | "image_not_found" | "login_required" | "image_pull_failed" | "isolation_unavailable" | "provider_unavailable" | "port_in_use" | "container_failed" | "unreachable" | "tls_failed" | "unauthorized" | "forbidden" | "endpoint_not_found" | "http_error" | "credentials_missing" | "cycle" | "store_unavailable" | "internal";

/** One thing that is wrong with a field, or worth a warning. */
export type FieldError = {
  /** The field, with a path into it where it has parts: `environment.API_KEY`. */
  field: string;
  /** What is wrong with it. */
  message: string;
};

/** How well a server does; the reasons stand beside it. */
export type Health = "ok" | "warning";

/** How often an idle server is asked for a sign of life, and how long it may take to give one. */
export type HeartbeatSpec = {
  /** Milliseconds of silence after which a heartbeat is sent; 0 switches heartbeats off. */
  interval_ms?: number;
  /** Milliseconds after which an unanswered heartbeat makes the server `unresponsive`. */
  timeout_ms?: number;
};

/** A path of this machine in a container. */
export type HostMount = {
  /** The path in the container. */
  container: string;
  /** The path on this machine. */
  host: string;
  /** Whether it may be written to. */
  writable?: boolean;
};

/** The programs that servers and environments are commonly run with, as the daemon finds them. */
export type HostView = {
  /** The daemon's `PATH`. */
  path: string;
  /** In a fixed order. */
  programs: (ProgramView)[];
  /** The isolation providers for containers: in the order in which they are preferred, then those used only if they are named, then the fallback. */
  providers?: (IsolationProviderView)[];
};

/** Whether a server of an import is registered now. */
export type ImportStatus = "imported" | "skipped" | "failed";

/** What became of an import. */
export type Imported = {
  /** One for each server of the configuration, in its order. */
  servers: (ImportedServer)[];
};

/** What became of one server of an import. */
export type ImportedServer = {
  /** Its name. */
  name: string;
  /** Why not. */
  reason?: string | null;
  server?: ServerView | null;
  /** Whether it is registered now. */
  status: ImportStatus;
  /** What a person should look at. */
  warnings: (string)[];
};

/** An isolation provider for containers. */
export type IsolationProviderView = {
  /** Whether it can run containers on this machine. */
  available: boolean;
  /** Whether its program is installed. */
  installed: boolean;
  /** Its name in registrations. */
  name: string;
  /** Why it is not available. */
  reason?: string | null;
  /** Its OCI runtime with its flags, if it is available. */
  runtime?: string | null;
};

/** Which sort of runtime carries a server; follows from which of `command`, `image`, `url` is given. */
export type Kind = "process" | "container" | "remote";

/** What can be set up. */
export type KindView = {
  base_url: string;
  /** The variables that set it. */
  environment: (string)[];
  kind: ProviderKind;
  name: string;
  needs_key: boolean;
};

/** What a server may use at most, as written by the person who registered it. */
export type Limits = {
  /** Cores, such as `"0.5"`. */
  cpu?: string;
  /** Bytes of writable storage, such as `"1G"`. */
  disk?: string;
  /** Bytes of memory, such as `"512M"`. */
  memory?: string;
  /** Processes and threads. */
  pids?: number;
};

/** One line of a server's log. */
export type LogEntry = {
  /** When. */
  at: string;
  /** What, without the line's end. */
  line: string;
  /** Counts the lines of this server's log; for following it without gaps. */
  seq: number;
  /** Where from. */
  stream: LogStream;
  /** The part of the daemon that wrote it, of lifecycle lines. */
  tag?: LogTag;
};

/** The end of a server's log. */
export type LogPage = {
  /** Oldest first. */
  lines: (LogEntry)[];
};

/** Where a log line comes from. */
export type LogStream = "stderr" | "stdout" | "lifecycle";

/** The part of the daemon that wrote a lifecycle line, as in the daemon's own log. */
export type LogTag = "START" | "MCP" | "TOOLS";

/** A number, or `auto`: 1, and 8 once the server has answered a request while another was open. */
export type MaxInFlight = number | "auto";

/** One entry of a conversation, in the order in which they happened. */
export type Message = UserMessage & {
  role: "user";
} | AssistantMessage & {
  role: "assistant";
} | NoticeMessage & {
  role: "notice";
};

/** One failure. */
export type ModelFailure = {
  /** What to do next. */
  hint?: string | null;
  /** The sort. */
  kind: ModelFailureKind;
  /** What was attempted, and why it failed. */
  message: string;
  /** Seconds after which the provider asks to be tried again. */
  retry_after?: number | null;
};

/** The sorts of failure. */
export type ModelFailureKind = "not_configured" | "no_model" | "wrong_key" | "no_such_model" | "rate_limited" | "context_overflow" | "unreachable" | "refused" | "provider_error" | "stream_cut" | "timeout" | "no_tools" | "internal";

/** The models of a provider. */
export type ModelList = {
  /** The one that is asked where none is named. */
  default?: string | null;
  /** Their names, in the provider's order. */
  models: (string)[];
  /** The provider. */
  provider: string;
};

/** What a container may reach. */
export type Network = "egress" | "none" | "host";

/** A new title. */
export type NewTitle = {
  /** 1 to 200 characters on one line. */
  title: string;
};

/** What a notice tells. */
export type NoticeKind = {
  /** So many it may take. */
  limit: number;
  notice: "limit";
  /** So many it took. */
  steps: number;
} | {
  /** Why. */
  error: ModelFailure;
  notice: "error";
} | {
  notice: "stopped";
};

/** The turn ended in another way than with an answer. */
export type NoticeMessage = NoticeKind & {
  /** When. */
  at: string;
  /** The message. */
  id: string;
  /** Its turn. */
  turn_id: string;
};

/** See the module. */
export type Openings = {
  /** Whether it may use every system call, without the engine's seccomp profile. */
  all_system_calls?: boolean;
  /** Capabilities that are not dropped, such as `NET_BIND_SERVICE`. */
  capabilities?: (string)[];
  /** Directories and files of this machine that it sees. */
  mounts?: (HostMount)[];
  /** Whether its processes may gain privileges, as by a setuid program. */
  new_privileges?: boolean;
  /** Whether it may write to its root file system and not only to `/tmp` and its volumes. */
  writable_root?: boolean;
};

/** How a call ended. */
export type Outcome = "ok" | "tool_error" | "mcp_error" | "timeout" | "cancelled" | "overloaded" | "disconnected" | "too_large";

/** A container's port and the host's; host 0 lets the system choose. */
export type PortMapping = {
  /** The address of this machine on which it is published; loopback where none is given, so that nobody else reaches it. */
  address?: string | null;
  /** The port inside the container. */
  container: number;
  /** The port on this machine, 0 for any free one. */
  host?: number;
};

/** `mcpServerPreparing`: how far an image is, while its server is `starting` and its start timeout does not run yet. */
export type Preparing = {
  /** When. */
  at: string;
  /** The event's place in the order of all events. */
  generation: number;
  /** The server. */
  id: ServerId;
  /** What is being done, in words. */
  message: string;
  /** Its name at that time. */
  name: string;
};

/** Why a call failed. */
export type Problem = {
  /** The JSON-RPC code. */
  code?: number | null;
  /** What went wrong. */
  message: string;
  /** Where, as the tool tells it. */
  stack?: string | null;
};

/** Whether something of the server runs: HST-4.1's coarser word. */
export type ProcessStatus = "running" | "stopped" | "restarting";

/** A program of this machine. */
export type ProgramView = {
  /** What it is called. */
  name: string;
  /** Where it is; nothing where it is not on `PATH`. */
  path?: string | null;
  /** What it is good for, such as `runs servers written in Python`. */
  purpose: string;
  /** What it says about its version; nothing where it does not run. */
  version?: string | null;
};

/** The isolation provider of a server. */
export type Provider = "gvisor" | "firecracker" | "e2b" | "krun" | "podman" | "process";

/** What a provider is to be; what is missing stays as it was. */
export type ProviderBody = {
  /** A secret; empty to remove it. */
  api_key?: string | null;
  /** Where it is. */
  base_url?: string | null;
  /** The model that is asked where none is named; empty to remove it. */
  default_model?: string | null;
  /** Whether it is asked where none is named. */
  is_default?: boolean | null;
  kind?: ProviderKind | null;
  /** For people. */
  name?: string | null;
};

/** The protocols that are spoken. */
export type ProviderKind = "openai" | "anthropic" | "gemini" | "ollama";

/** What a test found. */
export type ProviderTest = {
  /** How long it took. */
  duration_ms: number;
  error?: ModelFailure | null;
  /** In words. */
  message: string;
  /** The model that was asked. */
  model?: string | null;
  /** How many models the provider lists, where it does. */
  models?: number | null;
  /** Whether a model answered. */
  ok: boolean;
};

/** One provider, without its key. */
export type ProviderView = {
  /** Where it is. */
  base_url: string;
  /** The model that is asked where none is named. */
  default_model?: string | null;
  /** Whether it has a key, which is never shown. */
  has_key: boolean;
  /** By which it is named. */
  id: string;
  /** Whether it is asked where none is named. */
  is_default: boolean;
  /** What it speaks. */
  kind: ProviderKind;
  /** For people. */
  name: string;
  /** Whether the environment sets one of the same id. */
  overrides_environment: boolean;
  /** `settings` or `environment`. */
  source: string;
};

/** All providers. */
export type ProvidersView = {
  /** Whether there is one. */
  configured: boolean;
  default?: DefaultView | null;
  kinds: (KindView)[];
  providers: (ProviderView)[];
};

/** A question that is open. */
export type Question = Wish & {
  /** The call during which it is asked. */
  call_id: string;
  /** The question. */
  id: string;
  /** Who asks. */
  server: string;
};

/** What the person answers. */
export type QuestionReply = {
  /** Whether they do. */
  action: ReplyAction;
  /** The values, for a form that is accepted. */
  content?: Record<string, unknown> | null;
};

/** The calls that wait for a server to be free. */
export type QueueView = {
  /** The longest wait since then, of a call that still waits too. */
  longest_wait_ms: number;
  /** The calls that have waited since the server was started. */
  waited: number;
  /** The calls that wait now. */
  waiting: number;
};

/** One call down to the wire. */
export type RecordedCall = ActivityEntry & {
  /** Whether the same request can be made again. */
  replayable: boolean;
  /** The JSON-RPC request. */
  request: RecordedText;
  response?: RecordedText | null;
  /** What stands in the server's log from the call's beginning to its end. */
  stderr: (LogEntry)[];
};

/** A text that was sent or received, as far as it is kept. */
export type RecordedText = {
  /** How many bytes it had. */
  bytes: number;
  /** Whether a secret was taken out of it. */
  redacted: boolean;
  /** What is kept of it. */
  text: string;
  /** Whether its end is missing. */
  truncated: boolean;
};

/** How requests to a remote server are signed, beside the headers that a person gave. */
export type RemoteAuth = "google_id_token";

/** How a call is made again. */
export type Replay = {
  /** Other params than those that were sent. */
  params?: Record<string, unknown> | null;
  /** How long the server may be silent. */
  timeout_ms?: number | null;
};

/** What came of a call that was made again. */
export type Replayed = {
  /** The new call. */
  call_id: string;
  /** The JSON-RPC result, as the server sent it. */
  result: unknown;
};

/** Whether the person does what a server wants. */
export type ReplyAction = "accept" | "decline" | "cancel";

/** Why a repository could not be looked into. */
export type RepositoryError = {
  /** What to do next. */
  hint: string;
  /** What was attempted and why it failed. */
  message: string;
};

/** One repository and its environments. */
export type RepositoryView = {
  /** Sorted by id. */
  environments: (EnvironmentView)[];
  error?: RepositoryError | null;
  /** Its working tree: what tells two environments of the same id apart. */
  path: string;
  /** The secrets that its environment.json asks for, and those that were approved before. */
  secrets?: (SecretView)[];
};

/** Isolation without which a server must not start. */
export type Requirement = "gvisor";

/** What to do when a server that had been ready ends by itself. */
export type RestartPolicy = "always" | "on-failure" | "never";

/** The user's decision on one secret of a repository. */
export type SecretDecision = {
  /** Whether commands in its environments get the secret. */
  allow: boolean;
  /** The secret's name. */
  name: string;
  /** The reference that was shown: if the repository asks for another one by now, nothing is done. */
  reference: string;
  /** The repository's path, as the list of environments has it. */
  repository: string;
};

/** The secrets of a repository after a decision. */
export type SecretList = {
  /** In the order of the repository's environment.json. */
  secrets: (SecretView)[];
};

/** Whether the user has approved a secret. */
export type SecretState = "allowed" | "pending" | "changed" | "unused";

/** One secret that a repository asks for. */
export type SecretView = {
  /** The file that the reference leads to, through all links. */
  file?: string | null;
  /** The variable that commands in environments get. */
  name: string;
  /** `env://VARIABLE` or `file://PATH`, as the repository writes it. */
  reference: string;
  /** Whether the user has approved it. */
  state: SecretState;
};

/** The identifier given to a server when it is registered. */
export type ServerId = string;

/** All servers. */
export type ServerList = {
  /** Sorted by name. */
  servers: (ServerView)[];
};

/** `mcpServerAdded`, `mcpServerRemoved` and `mcpServerChanged`: told once it is so, whoever did it. */
export type ServerNotice = {
  /** When. */
  at: string;
  /** The event's place in the order of all events. */
  generation: number;
  /** The server. */
  id: ServerId;
  /** Its name from now on; of one that was removed, the one it had. */
  name: string;
};

/** One registered server: everything a person decides about it. */
export type ServerSpec = {
  /** Its arguments, never read by a shell; for an image, what its entry point is given. */
  args?: (string)[];
  /** Whom such a signature is for; the URL's origin where it is not given. */
  audience?: string | null;
  auth?: RemoteAuth | null;
  /** How long the server may be silent about a call, in milliseconds. Where it is not given, 30 s for `POST …/call` and 60 s for the gateway, the chat and the console. */
  call_timeout_ms?: number | null;
  /** The program to run, found on PATH or given as a path. */
  command?: string | null;
  /** The working directory: of a process, the daemon user's home where it is not given; in a container, what the image says. */
  cwd?: string | null;
  /** What it is for. */
  description?: string | null;
  /** Whether it should run. */
  enabled?: boolean;
  /** Variables for the server's process. */
  environment?: Record<string, string>;
  /** What goes with every request to a remote server, such as `Authorization`. */
  headers?: Record<string, string>;
  /** How its liveness is watched. */
  heartbeat?: HeartbeatSpec;
  /** Where on that port it speaks MCP over Streamable HTTP; `/mcp`, then `/` are tried where it is not given. */
  http_path?: string | null;
  /** The container image to run. */
  image?: string | null;
  /** Whether its resources are offered as tools. */
  include_resources?: boolean;
  max_in_flight?: MaxInFlight | null;
  /** What people call it. */
  name: string;
  /** What a container may reach. */
  network?: Network;
  /** What of a container's isolation is given up, by name. */
  openings?: Openings;
  /** Ports of a container to publish. Without a stdio bridge, the first is the one on which the server is expected. */
  ports?: (PortMapping)[];
  /** Stands in place of its name in the names of its tools, prompts and `ui://` resources where all servers are joined: `PREFIX__tool`. */
  prefix?: string | null;
  provider?: Provider | null;
  require?: Requirement | null;
  /** What it may use at most. */
  resource_limits?: Limits;
  /** What to do when it ends by itself. */
  restart_policy?: RestartPolicy;
  /** Whether clients share one process. */
  sharing?: Sharing;
  /** How long it may take to become ready, in milliseconds. */
  start_timeout_ms?: number;
  /** Whether the daemon speaks to it over stdin and stdout. */
  stdio_bridge?: boolean;
  /** The tools that agents may see and call; all where it is empty. `*` stands for anything. */
  tools_allow?: (string)[];
  /** The tools that they may not, even where `tools_allow` names them. */
  tools_deny?: (string)[];
  /** The Streamable HTTP endpoint to use. */
  url?: string | null;
  /** Who it is inside its container, `user` or `user:group`; what the image says where it is not given. */
  user?: string | null;
  /** Paths in a container that are kept, each on a volume of its own. */
  volumes?: (string)[];
};

/** The server object: what was asked for and what is true now. */
export type ServerView = {
  /** Its arguments. */
  args: (string)[];
  /** Whom such a signature is for, where that was given. */
  audience?: string | null;
  auth?: RemoteAuth | null;
  /** How long the server may be silent about a call. None: 30 s for `POST …/call`, 60 s for the gateway, the chat and the console. */
  call_timeout_ms?: number | null;
  /** Its MCP capabilities. */
  capabilities?: unknown;
  /** The program. */
  command?: string | null;
  /** Its container, while it runs in one. */
  container_id?: string | null;
  /** When it was registered. */
  created_at: string;
  /** Its working directory, where one was given. */
  cwd?: string | null;
  /** What it is for. */
  description?: string | null;
  /** Whether it should run. */
  enabled: boolean;
  /** Where its published ports are reached. */
  endpoints: (string)[];
  /** Variables; values are masked unless `?reveal=true`. */
  environment: Record<string, string>;
  /** Grows with each acquisition of the server by a daemon. */
  epoch: number;
  error?: Failure | null;
  /** What goes with every request to it; values are masked unless `?reveal=true`. */
  headers?: Record<string, string>;
  /** How well it does. */
  health: Health;
  /** Why `health` is a warning, one sentence each. */
  health_reasons: (string)[];
  /** How its liveness is watched. */
  heartbeat: HeartbeatSpec;
  /** Where on its port it speaks MCP, where that was given. */
  http_path?: string | null;
  /** The UUID made at registration. */
  id: ServerId;
  /** The container image. */
  image?: string | null;
  /** The digest of the image it runs, or last ran. */
  image_digest?: string | null;
  /** Whether its resources are offered as tools. */
  include_resources: boolean;
  /** What isolation is in force, read back from the system. */
  isolation?: unknown;
  /** `process`, `container` or `remote`. */
  kind: Kind;
  /** When it last ended unexpectedly. */
  last_crash_at?: string | null;
  max_in_flight?: MaxInFlight | null;
  /** How many requests it is given at once now. */
  max_in_flight_effective?: number;
  /** Where it speaks MCP over Streamable HTTP, where it does. */
  mcp_endpoint?: string | null;
  /** What people call it. */
  name: string;
  /** What a container may reach. */
  network: Network;
  /** When it is started next, while it waits for that. */
  next_restart_at?: string | null;
  /** What of a container's isolation is given up. */
  openings?: Openings;
  /** The id of the daemon that owns it. */
  owner?: string | null;
  /** The server's own process, while it runs. */
  pid?: number | null;
  /** Published ports. */
  ports: (PortMapping)[];
  /** Stands in place of its name in joined names, if one was given. */
  prefix?: string | null;
  /** What is being fetched for it before it can start. */
  preparing?: string | null;
  /** Whether something of it runs. */
  process_status: ProcessStatus;
  /** The MCP revision in use with it. */
  protocol_version?: string | null;
  provider?: Provider | null;
  queue?: QueueView | null;
  require?: Requirement | null;
  /** What it may use at most. */
  resource_limits: Limits;
  /** How often it was started again after a crash, since it was last switched on or restarted by hand. */
  restart_count: number;
  /** What happens when it ends by itself. */
  restart_policy: RestartPolicy;
  /** Its MCP name and version. */
  server_info?: unknown;
  /** Whether clients share one process. */
  sharing: Sharing;
  /** How long it may take to become ready. */
  start_timeout_ms: number;
  /** When the present process started. */
  started_at?: string | null;
  /** Its state. */
  status: Status;
  /** Whether it is bridged over stdio. */
  stdio_bridge: boolean;
  /** The tools that agents may see and call; all where it is empty. */
  tools_allow?: (string)[];
  /** The tools that they may not. */
  tools_deny?: (string)[];
  /** When its registration was last changed. */
  updated_at: string;
  /** How long the present process has run. */
  uptime_seconds?: number | null;
  /** The endpoint of a remote server. */
  url?: string | null;
  usage?: Usage | null;
  /** Who it is inside its container, where that was given. */
  user?: string | null;
  /** Kept paths. */
  volumes: (string)[];
  /** What a person should know about this registration. */
  warnings: (string)[];
};

/** How many server processes serve the clients. */
export type Sharing = "shared" | "per_session";

/** Who says something to the model. */
export type Speaker = "user" | "assistant";

/** A text of somebody's. */
export type Spoken = {
  /** Whose. */
  role: Speaker;
  /** The words. */
  text: string;
};

/** Where the time of a call went, in milliseconds. */
export type Stages = {
  /** While the server waited for input from the user; no part of `duration_ms`. */
  input_ms?: number;
  /** The calls before it, running or waiting, when it began to wait. */
  queue_ahead?: number;
  /** Waiting for the server to be free. */
  queue_ms: number;
  /** Until the answer was whole. */
  read_ms?: number;
  /** Until the answer began, without `input_ms`. */
  server_ms: number;
  /** Until the request was in the server's pipe. */
  write_ms: number;
};

/** The seven states of a server, as everybody is told. */
export type Status = "stopped" | "starting" | "ready" | "unresponsive" | "restarting" | "stopping" | "error";

/** `mcpServerStatusChanged`. */
export type StatusChange = {
  /** When. */
  at: string;
  error?: Failure | null;
  /** The event's place in the order of all events. */
  generation: number;
  /** The server. */
  id: ServerId;
  /** Its name at that time. */
  name: string;
  /** The one it had before. */
  previous_status: Status;
  /** The status it has now. */
  status: Status;
};

/** Whether something was stopped. */
export type Stopped = {
  /** False where nothing ran. */
  stopped: boolean;
};

/** `toolCallFinished`. */
export type ToolCallFinished = {
  /** When. */
  at: string;
  /** The call. */
  call_id: string;
  /** How long it took. */
  duration_ms: number;
  /** The server. */
  id: ServerId;
  /** Its name at that time. */
  name: string;
  /** How it ended. */
  outcome: Outcome;
  /** The tool. */
  tool: string;
};

/** `toolCallStarted`. */
export type ToolCallStarted = {
  /** When. */
  at: string;
  /** The call; the same in its `toolCallFinished` and in the activity. */
  call_id: string;
  /** The server. */
  id: ServerId;
  /** Its name at that time. */
  name: string;
  /** The tool. */
  tool: string;
};

/** One tool call. */
export type ToolCard = {
  /** What it is called with. */
  arguments: unknown;
  /** The call; the same in the activity and in the flight recorder. */
  call_id: string;
  /** How long it took. */
  duration_ms?: number | null;
  error?: Problem | null;
  /** The model's own id of the call. */
  model_call_id: string;
  /** Counts the calls of the conversation, from 1. */
  n: number;
  /** The name under which the model knows it. */
  name: string;
  outcome?: CallEnd | null;
  /** Whether the call reached a server, so that the activity has it. */
  recorded: boolean;
  /** What came back, cut where it is large. */
  result?: unknown;
  /** How large the whole result is. */
  result_bytes: number;
  /** The server; empty where the model named a tool that is not there. */
  server: string;
  /** When it began. */
  started_at: string;
  /** How far it is. */
  status: CallStatus;
  /** The tool's title, where it has one. */
  title?: string | null;
  /** The tool. */
  tool: string;
  /** Whether `result` is cut. */
  truncated: boolean;
};

/** What a tool is behind its name. */
export type ToolKind = "tool" | "resource";

/** One server. */
export type ToolServerView = {
  /** Why its tools could not be listed, though it is connected. */
  error?: string | null;
  /** What their definitions cost of a model's context, roughly. */
  estimated_tokens: number;
  /** Whether its resources are offered too. */
  include_resources: boolean;
  /** Its name. */
  server: string;
  /** Its state. */
  status: Status;
  /** How many of its tools are on. */
  tools: number;
};

/** One tool. */
export type ToolView = {
  /** What it does. */
  description?: string | null;
  /** What its definition costs of a model's context, roughly. */
  estimated_tokens: number;
  /** What it is. */
  kind: ToolKind;
  /** The model's name for it. */
  name: string;
  /** Whether it is left out. */
  off: boolean;
  /** The server. */
  server: string;
  /** Its title. */
  title?: string | null;
  /** The server's name for it. */
  tool: string;
};

/** The tools that a chat would offer. */
export type ToolsView = {
  /** What the definitions of those that are on cost of a model's context, roughly. */
  estimated_tokens: number;
  /** All servers by name, also those that are not there now. */
  servers: (ToolServerView)[];
  /** By server, in the server's order. */
  tools: (ToolView)[];
};

/** One turn. */
export type TurnRequest = {
  action?: Action | null;
  /** Whether somebody looks on who can answer what servers ask; else they are told that nobody can. */
  attended?: boolean | null;
  /** The conversation; a new one where it is missing. */
  conversation_id?: string | null;
  /** What the person says. */
  message?: string | null;
  /** The model; kept for the conversation. */
  model?: string | null;
  /** The provider; kept for the conversation. */
  provider?: string | null;
  /** The servers whose tools are offered; null for all. Kept for the conversation. */
  servers?: (string)[] | null;
  /** Tools that are not offered, as `server/tool`. Kept for the conversation. */
  tools_off?: (string)[] | null;
};

/** What a server's whole process tree uses now. */
export type Usage = {
  /** Share of one core since the last look, in percent. */
  cpu_percent: number;
  /** Bytes written to storage of its own, where that is measured. */
  disk_bytes?: number | null;
  /** Resident memory of the tree. */
  memory_bytes: number;
  /** Processes in the tree. */
  pids: number;
};

/** What a person said. */
export type UserMessage = {
  /** When. */
  at: string;
  /** The message. */
  id: string;
  /** The words. */
  text: string;
  /** Its turn. */
  turn_id: string;
};

/** What is wrong with a registration and what is worth knowing about it. */
export type Validation = {
  /** What is wrong. */
  errors: (ValidationError)[];
  /** What is not wrong but worth knowing. */
  warnings: (FieldError)[];
};

/** One thing that is wrong. */
export type ValidationError = {
  /** Whether it cannot be saved like this. What can be saved fails when it is started, and then shows why. */
  blocking: boolean;
  /** The field, with a path into it where it has parts. */
  field: string;
  /** What is wrong with it. */
  message: string;
};

/** What servers in containers keep. */
export type VolumeList = {
  /** Sorted by server and path. */
  volumes: (VolumeView)[];
};

/** One kept path of a server, which outlives the server. */
export type VolumeView = {
  /** What it holds, where that can be read. */
  bytes?: number | null;
  /** Its name, as the container engine knows it. */
  name: string;
  /** Where it stands in the container. */
  path?: string | null;
  /** That server's name; none once the server is removed. */
  server?: string | null;
  server_id?: ServerId | null;
};

/** What a server wants. */
export type Wish = {
  /** What for. */
  message: string;
  /** Which, as a JSON schema. */
  schema: Record<string, unknown>;
  wish: "form";
} | {
  /** What for. */
  message: string;
  /** The page. */
  url: string;
  wish: "url";
} | {
  /** How long its answer may be. */
  max_tokens?: number | null;
  /** What it is asked. */
  messages: (Spoken)[];
  /** What the model is to know before. */
  system?: string | null;
  wish: "sampling";
};

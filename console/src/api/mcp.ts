// The parts of MCP that the console shows. They come from servers that may say anything, hence
// nothing but the name is certain.

export type Tool = {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: JsonSchema;
  outputSchema?: JsonSchema;
  annotations?: {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
  };
};

/** JSON Schema, as far as a form is made of it. */
export type JsonSchema = {
  [key: string]: unknown;
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  allOf?: JsonSchema[];
};

export type Resource = {
  uri: string;
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  size?: number;
};

export type ResourceTemplate = {
  uriTemplate: string;
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
};

export type ResourceContents = { uri: string; mimeType?: string; text?: string; blob?: string };

export type PromptArgument = { name: string; title?: string; description?: string; required?: boolean };

export type Prompt = { name: string; title?: string; description?: string; arguments?: PromptArgument[] };

export type ContentBlock =
  | { type: "text"; text: string }
  | { type: "image"; data: string; mimeType: string }
  | { type: "audio"; data: string; mimeType: string }
  | { type: "resource"; resource: ResourceContents }
  | { type: "resource_link"; uri: string; name?: string; title?: string; description?: string; mimeType?: string };

export type ToolResult = { content?: ContentBlock[]; structuredContent?: unknown; isError?: boolean };

export type PromptResult = {
  description?: string;
  messages?: { role: string; content: ContentBlock | ContentBlock[] }[];
};

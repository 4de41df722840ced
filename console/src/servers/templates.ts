// Example servers that fill in the form. docs/ describes the same ones.

export type Template = {
  id: TemplateId;
  /** The name that the new server gets. */
  name: string;
  command: string;
  args: string[];
  env?: string[];
};

export type TemplateId = "filesystem" | "fetch" | "memory" | "git" | "sqlite" | "github" | "time" | "everything";

export const TEMPLATES: readonly Template[] = [
  {
    id: "filesystem",
    name: "filesystem",
    command: "npx",
    args: ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
  },
  { id: "memory", name: "memory", command: "npx", args: ["-y", "@modelcontextprotocol/server-memory"] },
  { id: "everything", name: "everything", command: "npx", args: ["-y", "@modelcontextprotocol/server-everything"] },
  { id: "fetch", name: "fetch", command: "uvx", args: ["mcp-server-fetch"] },
  { id: "git", name: "git", command: "uvx", args: ["mcp-server-git", "--repository", "/path/to/repository"] },
  { id: "sqlite", name: "sqlite", command: "uvx", args: ["mcp-server-sqlite", "--db-path", "/path/to/database.db"] },
  {
    id: "github",
    name: "github",
    command: "npx",
    args: ["-y", "@modelcontextprotocol/server-github"],
    env: ["GITHUB_PERSONAL_ACCESS_TOKEN"],
  },
  { id: "time", name: "time", command: "uvx", args: ["mcp-server-time"] },
];

/** Shown to who has no server yet: they need nothing but Node.js. */
export const FIRST_TEMPLATES: readonly TemplateId[] = ["filesystem", "memory", "everything"];

export const templateOf = (id: string | undefined) => TEMPLATES.find((template) => template.id === id);

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { TFunction } from "i18next";
import { afterEach, expect, test, vi } from "vitest";
import type { KindView, ProviderView, ProvidersView } from "../api/schema";
import ProviderDialog from "./provider-dialog";
import { draftOf, idFor } from "./provider-draft";

afterEach(() => vi.unstubAllGlobals());

const kinds: KindView[] = [
  {
    kind: "openai",
    name: "OpenAI and compatible servers",
    base_url: "https://a/v1/",
    needs_key: true,
    environment: [],
  },
  { kind: "ollama", name: "Ollama", base_url: "http://127.0.0.1:11434/", needs_key: false, environment: [] },
];
const stored: ProviderView = {
  id: "mine",
  kind: "openai",
  name: "Mine",
  source: "settings",
  base_url: "https://a/v1/",
  has_key: true,
  default_model: "m",
  is_default: true,
  overrides_environment: false,
};

/** Opens the dialog and gives back what is saved. */
function open(provider: ProviderView | null) {
  const all: ProvidersView = { configured: provider !== null, providers: provider ? [provider] : [], kinds };
  const saved: { url: string; body: unknown }[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    if (init.method === "PUT") saved.push({ url, body: JSON.parse(String(init.body)) });
    return Promise.resolve(Response.json(init.method === "PUT" ? stored : { provider: "mine", models: [] }));
  });
  const closed = vi.fn();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <ProviderDialog all={all} provider={provider} onClose={closed} />
    </QueryClientProvider>,
  );
  return { saved, closed };
}

const save = () => userEvent.click(screen.getByRole("button", { name: "Save" }));

test("a sort that is called by words is called so in the reader's language", () => {
  const all: ProvidersView = { configured: false, providers: [], kinds };
  const japanese = ((key: string) => (key === "models.kindOpenai" ? "OpenAI と互換サーバー" : key)) as TFunction;
  expect(draftOf(all, null, japanese).name).toBe("OpenAI と互換サーバー");
});

test("a new provider takes the name of its sort, and an id of its name", async () => {
  const { saved, closed } = open(null);
  await userEvent.selectOptions(screen.getByRole("combobox", { name: "Type" }), "ollama");
  expect(screen.getByRole<HTMLInputElement>("textbox", { name: "Name" }).value).toBe("Ollama");
  await userEvent.type(screen.getByRole("combobox", { name: "Default model" }), "qwen3");
  await save();
  await vi.waitFor(() => expect(closed).toHaveBeenCalled());
  expect(saved).toEqual([
    {
      url: "/api/v1/chat/providers/ollama",
      body: {
        kind: "ollama",
        name: "Ollama",
        base_url: "http://127.0.0.1:11434/",
        default_model: "qwen3",
        is_default: true,
      },
    },
  ]);
});

test("a stored key is not shown, kept when nothing is typed, and deleted on request", async () => {
  const { saved, closed } = open(stored);
  const key = screen.getByLabelText<HTMLInputElement>("API key");
  expect(key.type).toBe("password");
  expect(key.value).toBe("");
  await save();
  await vi.waitFor(() => expect(closed).toHaveBeenCalledTimes(1));
  expect(saved[0]!.body).not.toHaveProperty("api_key");
  await userEvent.click(screen.getByRole("checkbox", { name: "Delete the stored key" }));
  await save();
  await vi.waitFor(() => expect(saved).toHaveLength(2));
  expect(saved[1]!.body).toMatchObject({ api_key: "" });
  await userEvent.type(key, "sk-new");
  await save();
  await vi.waitFor(() => expect(saved).toHaveLength(3));
  expect(saved[2]!.body).toMatchObject({ api_key: "sk-new" });
});

test("an id is plain, and nobody else's", () => {
  expect(idFor("LM Studio (local)", "openai", [])).toBe("lm-studio-local");
  expect(idFor("ローカル", "openai", [])).toBe("openai");
  expect(idFor("Ollama", "ollama", ["ollama", "ollama-2"])).toBe("ollama-3");
  expect(idFor("x".repeat(80), "openai", [])).toHaveLength(36);
});

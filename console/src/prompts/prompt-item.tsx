// One prompt: a field for each argument, and what the server makes of them.
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { useLocation } from "wouter";
import type { ContentBlock, Prompt, PromptResult } from "../api/mcp";
import { call } from "../api/queries";
import type { ServerView } from "../api/schema";
import { NEW, changeDraft } from "../chat/draft";
import { ContentView } from "../tools/content-view";
import { FailureAlert } from "../ui/alert";
import { Field } from "../ui/field";
import { guardComposition, isSubmitChord } from "../ui/ime";

export function PromptItem({ server, prompt }: { server: ServerView; prompt: Prompt }) {
  const { t } = useTranslation();
  const [values, setValues] = useState<Record<string, string>>({});
  const [tried, setTried] = useState(false);
  const render = useMutation({
    mutationFn: (given: Record<string, string>) =>
      call<PromptResult>(server.id, "prompts/get", { name: prompt.name, arguments: given }),
  });
  const wanted = prompt.arguments ?? [];
  const missing = (name: string) =>
    wanted.some((argument) => argument.name === name && argument.required) && !values[name];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (wanted.some(({ name }) => missing(name))) return;
    // An argument that was not given is left out.
    render.mutate(Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "")));
  };
  return (
    <form
      className="px-4 py-3"
      noValidate
      onSubmit={submit}
      onKeyDown={(event) => {
        guardComposition(event);
        if (isSubmitChord(event)) event.currentTarget.requestSubmit();
      }}
    >
      <p className="flex flex-wrap items-center gap-x-2">
        <code className="font-semibold">{prompt.name}</code>
        {prompt.title && prompt.title !== prompt.name && <span className="text-soft">{prompt.title}</span>}
      </p>
      {prompt.description && <p className="text-sm whitespace-pre-line text-soft">{prompt.description}</p>}
      <div className="mt-2 grid items-start gap-3 sm:grid-cols-2">
        {wanted.map(({ name, title, description, required = false }) => (
          <Field
            key={name}
            label={title ?? name}
            hint={description}
            required={required}
            error={tried && missing(name) ? t("prompts.argumentRequired", { name: title ?? name }) : null}
          >
            {(field) => (
              <input
                {...field}
                className="input"
                value={values[name] ?? ""}
                onChange={(event) => setValues({ ...values, [name]: event.target.value })}
                autoComplete="off"
              />
            )}
          </Field>
        ))}
      </div>
      <button
        type="submit"
        className="btn btn-small mt-3"
        aria-label={t("prompts.render", { name: prompt.name })}
        aria-busy={render.isPending}
      >
        {t("prompts.renderShort")}
      </button>
      {render.isError && (
        <div className="mt-3">
          <FailureAlert title={t("prompts.renderFailed")} failure={render.error} />
        </div>
      )}
      {render.data && <Messages prompt={prompt} result={render.data} />}
    </form>
  );
}

/** What a prompt says, as one message. */
export function promptText({ messages = [] }: PromptResult): string {
  const blocks = messages.flatMap(({ content }) => [content].flat());
  return blocks.map(blockText).filter(Boolean).join("\n\n");
}

function blockText(block: ContentBlock): string {
  if (block.type === "text") return block.text;
  return block.type === "resource" ? (block.resource?.text ?? "") : "";
}

function Messages({ prompt, result }: { prompt: Prompt; result: PromptResult }) {
  const { t } = useTranslation();
  const [, navigate] = useLocation();
  const text = promptText(result);
  const use = () => {
    changeDraft(NEW, { text });
    navigate("/chat");
  };
  const word = (role: string) =>
    role === "user" || role === "assistant" || role === "system" ? t(`prompts.roles.${role}`) : role;
  return (
    <section
      aria-label={t("prompts.rendered", { name: prompt.name })}
      className="mt-3 space-y-3 border-l-2 border-accent pl-3"
    >
      {(result.messages ?? []).map((message, index) => (
        // Messages are told apart by their place.
        <div key={index}>
          <p className="mb-1 text-sm font-medium">{word(message.role)}</p>
          {[message.content].flat().map((block, at) => (
            // Blocks have no name.
            <ContentView key={at} block={block} name={prompt.name} />
          ))}
        </div>
      ))}
      {text && (
        <button type="button" className="btn btn-small" onClick={use}>
          {t("prompts.useInChat")}
        </button>
      )}
    </section>
  );
}

// What a server wants of the person before its call goes on, on the card of that call: values for
// a form, a page to be opened, or leave to ask the model.
import { useMutation } from "@tanstack/react-query";
import { CircleQuestionMark } from "lucide-react";
import { type FormEvent, type ReactNode, createContext, useContext, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useAway } from "../api/connection";
import type { JsonSchema } from "../api/mcp";
import type { QuestionReply } from "../api/schema";
import { SchemaForm } from "../tools/schema-form";
import { defaultsOf } from "../tools/schema-model";
import { submitArguments } from "../tools/submit-arguments";
import { useArguments } from "../tools/use-arguments";
import { FailureAlert } from "../ui/alert";
import { guardComposition } from "../ui/ime";
import { LongText } from "../ui/json-view";
import { answerQuestion } from "./api";
import type { Question } from "./types";

/** The questions that are open in the conversation. */
export const OpenQuestions = createContext<readonly Question[]>([]);

/** Those of one call. */
export function Questions({ conversation, callId }: { conversation: string; callId: string }) {
  const questions = useContext(OpenQuestions).filter(({ call_id }) => call_id === callId);
  return questions.map((question) => (
    <QuestionView key={question.id} conversation={conversation} question={question} />
  ));
}

type Of<Wish extends Question["wish"]> = { question: Extract<Question, { wish: Wish }>; ways: Ways };
/** How the question is answered. */
type Ways = { disabled: boolean; reply: (reply: QuestionReply) => void };

function QuestionView({ conversation, question }: { conversation: string; question: Question }) {
  const { t } = useTranslation();
  const answer = useMutation({
    mutationFn: (reply: QuestionReply) => answerQuestion(conversation, question.id, reply),
  });
  // Once it is answered, an event takes it away.
  const ways = { disabled: useAway() || answer.isPending || answer.isSuccess, reply: answer.mutate };
  return (
    <section
      aria-label={t("chat.question.title", { server: question.server })}
      data-question
      className="mt-2 space-y-3 rounded-lg border border-l-2 border-line border-l-accent bg-surface px-3 py-2.5"
    >
      <p role="status" className="flex items-center gap-2 font-medium">
        <CircleQuestionMark size={16} className="flex-none text-accent" aria-hidden />
        {t(`chat.question.${question.wish}`, { server: question.server })}
      </p>
      {question.wish === "form" ? (
        <FormQuestion question={question} ways={ways} />
      ) : question.wish === "url" ? (
        <PageQuestion question={question} ways={ways} />
      ) : (
        <SamplingQuestion question={question} ways={ways} />
      )}
      {answer.isError && <FailureAlert title={t("chat.question.failed")} failure={answer.error} />}
    </section>
  );
}

function FormQuestion({ question, ways }: Of<"form">) {
  const schema = question.schema as JsonSchema;
  const start = useMemo(() => defaultsOf(schema), [schema]);
  const { t } = useTranslation();
  const values = useArguments(schema, start);
  const accept = () => ways.reply({ action: "accept", content: values.value as Record<string, unknown> });
  const submit = (event: FormEvent<HTMLFormElement>) => submitArguments(event, values.check, accept);
  return (
    <form noValidate className="space-y-3" onSubmit={submit} onKeyDown={guardComposition}>
      <Words text={question.message} />
      <SchemaForm schema={schema} value={values.value} problems={values.shown} onChange={values.setValue} />
      <Buttons ways={ways}>
        <button type="submit" className="btn btn-small btn-primary" disabled={ways.disabled}>
          {t("chat.question.answer")}
        </button>
      </Buttons>
    </form>
  );
}

function PageQuestion({ question, ways }: Of<"url">) {
  const { t } = useTranslation();
  return (
    <>
      <Words text={question.message} />
      <p className="font-mono text-sm break-all">{question.url}</p>
      <Buttons ways={ways}>
        <a
          href={question.url}
          target="_blank"
          rel="noopener noreferrer"
          className="btn btn-small btn-primary"
          onClick={() => ways.disabled || ways.reply({ action: "accept" })}
        >
          {t("chat.question.open")}
        </a>
      </Buttons>
    </>
  );
}

function SamplingQuestion({ question, ways }: Of<"sampling">) {
  const { t } = useTranslation();
  const said = question.messages.map(({ role, text }) => (role === "assistant" ? `> ${text}` : text));
  const text = [...(question.system ? [question.system] : []), ...said].join("\n\n");
  return (
    <>
      <LongText text={text} label={t("chat.question.prompt")} />
      <Buttons ways={ways}>
        <button
          type="button"
          className="btn btn-small btn-primary"
          disabled={ways.disabled}
          onClick={() => ways.reply({ action: "accept" })}
        >
          {t("chat.question.allow")}
        </button>
      </Buttons>
    </>
  );
}

function Words({ text }: { text: string }) {
  return text === "" ? null : <p className="whitespace-pre-wrap">{text}</p>;
}

function Buttons({ ways, children }: { ways: Ways; children: ReactNode }) {
  const { t } = useTranslation();
  return (
    <p className="flex flex-wrap gap-2">
      {children}
      <button
        type="button"
        className="btn btn-small"
        disabled={ways.disabled}
        onClick={() => ways.reply({ action: "decline" })}
      >
        {t("chat.question.decline")}
      </button>
    </p>
  );
}

// Environment variables, or headers, as rows of name and value. A value that the daemon holds is never shown:
// left alone it stays as it is.
import { Eye, EyeOff, Plus, X } from "lucide-react";
import { type ClipboardEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { type EnvRow, envRow, parseEnvBlock } from "./draft";
import type { ServerForm } from "./use-server-form";

/** Which of the two. */
type Of = "env" | "headers";

export function EnvTable({ form, of }: { form: ServerForm; of: Of }) {
  const { t } = useTranslation();
  const env = form.draft[of];
  const put = (rows: EnvRow[]) => form.change({ [of]: rows });
  const update = (key: number, part: Partial<EnvRow>) =>
    put(env.map((row) => (row.key === key ? { ...row, ...part } : row)));
  const paste = (index: number) => (event: ClipboardEvent) => {
    const pairs = parseEnvBlock(event.clipboardData.getData("text"));
    if (!pairs) return;
    event.preventDefault();
    const after = env[index]?.name || env[index]?.value ? index + 1 : index;
    put([...env.slice(0, after), ...pairs.map(({ name, value }) => envRow(name, value)), ...env.slice(index + 1)]);
  };
  return (
    <fieldset>
      <legend className="mb-1 font-medium">{t(`form.${of}`)}</legend>
      <div className="space-y-2">
        {env.map((row, index) => (
          <Row
            key={row.key}
            row={row}
            of={of}
            number={index + 1}
            problem={form.problem(`${of}.${index}`)}
            onChange={(part) => update(row.key, part)}
            onLeave={() => form.leave(`${of}.${index}`)}
            onPaste={paste(index)}
            onRemove={() => put(env.filter(({ key }) => key !== row.key))}
          />
        ))}
      </div>
      <div className="mt-2 flex flex-wrap items-center gap-3">
        <button type="button" className="btn btn-small" onClick={() => put([...env, envRow()])}>
          <Plus size={14} aria-hidden />
          {t(`form.${of}Add`)}
        </button>
        {env.length > 0 && <span className="text-sm text-soft">{t(`form.${of}Hint`)}</span>}
      </div>
    </fieldset>
  );
}

type RowProps = {
  row: EnvRow;
  of: Of;
  number: number;
  problem: string | undefined;
  onChange: (part: Partial<EnvRow>) => void;
  onLeave: () => void;
  onPaste: (event: ClipboardEvent) => void;
  onRemove: () => void;
};

function Row({ row, of, number, problem, onChange, onLeave, onPaste, onRemove }: RowProps) {
  const { t } = useTranslation();
  const [shown, setShown] = useState(false);
  const errorId = `env-${row.key}-error`;
  const Icon = shown ? EyeOff : Eye;
  return (
    <div>
      <div className="grid grid-cols-[1fr_auto_auto] gap-1.5 sm:grid-cols-[2fr_3fr_auto_auto]">
        <input
          className="input col-span-3 font-mono text-sm sm:col-span-1"
          aria-label={t(`form.${of}Name`, { n: number })}
          placeholder={t("form.envColumnName")}
          value={row.name}
          onChange={(event) => onChange({ name: event.target.value })}
          onBlur={onLeave}
          onPaste={onPaste}
          aria-invalid={Boolean(problem)}
          aria-errormessage={problem ? errorId : undefined}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
        />
        <input
          type={shown ? "text" : "password"}
          className="input font-mono text-sm"
          aria-label={t(`form.${of}Value`, { n: number })}
          placeholder={row.kept ? t("form.envKept") : t("form.envColumnValue")}
          value={row.value}
          onChange={(event) => onChange({ value: event.target.value, kept: false })}
          onBlur={onLeave}
          autoComplete="new-password"
          autoCapitalize="off"
          spellCheck={false}
        />
        <button
          type="button"
          className="btn btn-quiet btn-icon"
          aria-label={t(`form.${of}Show`, { n: number })}
          title={t(`form.${of}Show`, { n: number })}
          aria-pressed={shown}
          onClick={() => setShown(!shown)}
        >
          <Icon size={16} aria-hidden />
        </button>
        <button
          type="button"
          className="btn btn-quiet btn-icon"
          aria-label={t(`form.${of}Remove`, { n: number })}
          title={t(`form.${of}Remove`, { n: number })}
          onClick={onRemove}
        >
          <X size={16} aria-hidden />
        </button>
      </div>
      {problem && (
        <p id={errorId} className="mt-1 text-sm text-bad">
          {problem}
        </p>
      )}
    </div>
  );
}

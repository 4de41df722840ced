// Copies a text and says that it did.
import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";

type Props = { text: string | (() => string); label?: string; iconOnly?: boolean; className?: string };

export function CopyButton({ text, label, iconOnly = false, className = "" }: Props) {
  const { t } = useTranslation();
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 2000);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async () => setDone(await copyText(typeof text === "function" ? text() : text));
  const name = label ?? t("common.copy");
  return (
    <button
      type="button"
      className={`btn btn-small ${iconOnly ? "btn-quiet btn-icon" : ""} ${className}`}
      onClick={copy}
      aria-label={iconOnly ? name : undefined}
      title={iconOnly ? name : undefined}
    >
      {done ? <Check size={14} aria-hidden /> : <Copy size={14} aria-hidden />}
      {!iconOnly && (done ? t("common.copied") : name)}
      <span role="status" className="sr-only">
        {done && iconOnly ? t("common.copied") : ""}
      </span>
    </button>
  );
}

/** The clipboard needs a secure context, which a daemon on another machine's address is not. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

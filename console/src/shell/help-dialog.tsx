// The list of keyboard shortcuts.
import { useTranslation } from "react-i18next";
import { Modal } from "../ui/modal";

const KEYS = [
  ["help", ["?"]],
  ["search", ["/"]],
  ["servers", ["g", "s"]],
  ["chat", ["g", "c"]],
  ["activity", ["g", "a"]],
  ["environments", ["g", "e"]],
  ["settings", ["g", "t"]],
  ["add", ["n"]],
  ["next", ["j"]],
  ["previous", ["k"]],
  ["open", ["Enter"]],
  ["toggle", ["x"]],
  ["submit", ["Ctrl+Enter"]],
  ["close", ["Esc"]],
] as const;

export default function HelpDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Modal title={t("help.title")} open onClose={onClose}>
      <dl className="grid grid-cols-[auto_1fr] items-center gap-x-6 gap-y-2">
        {KEYS.map(([what, keys]) => (
          <div key={what} className="contents">
            <dt className="flex items-center gap-1.5">
              {keys.map((key, index) => (
                <span key={key} className="contents">
                  {index > 0 && <span className="text-sm text-soft">{t("help.thenKey")}</span>}
                  <kbd className="rounded border border-line bg-sunken px-1.5 py-0.5">{key}</kbd>
                </span>
              ))}
            </dt>
            <dd>{t(`help.keys.${what}`)}</dd>
          </div>
        ))}
      </dl>
      <p className="mt-4 text-sm text-soft">{t("help.off")}</p>
    </Modal>
  );
}

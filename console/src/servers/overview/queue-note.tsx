// Calls that waited for one another, and the setting that lets a server work on several.
import { useTranslation } from "react-i18next";
import { useSave } from "../../api/actions";
import { useAway } from "../../api/connection";
import type { ServerView } from "../../api/schema";
import { Alert } from "../../ui/alert";
import { milliseconds } from "../../ui/format";
import { tellFailure } from "../../ui/notices";

/** A shorter wait is no reason to change a setting. */
const NOTICEABLE_MS = 100;

export function QueueNote({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const save = useSave();
  const away = useAway();
  const { id, name, queue, max_in_flight, max_in_flight_effective } = server;
  if (!queue || queue.longest_wait_ms < NOTICEABLE_MS || max_in_flight === "auto" || max_in_flight_effective !== 1)
    return null;
  const raise = () =>
    save.mutate(
      { id, body: { max_in_flight: "auto" } },
      { onError: (error) => tellFailure(t("overview.queue.failed", { name }), error) },
    );
  const action = (
    <button type="button" className="btn btn-small" disabled={away || save.isPending} onClick={raise}>
      {t("overview.queue.auto")}
    </button>
  );
  const title = t("overview.queue.title", { count: queue.waited, ms: milliseconds(queue.longest_wait_ms) });
  return (
    <Alert tone="info" role="note" title={title} label={t("overview.queue.label")} action={action}>
      {t("overview.queue.text")}
    </Alert>
  );
}

// A page in a file of its own, loaded when it is first shown.
import { type ComponentType, Suspense, lazy } from "react";
import { useTranslation } from "react-i18next";
import { Loading } from "./states";

const PAUSES_MS = [300, 1500];

/** Loads a file, and once more where that failed: a network that comes or goes ends what is loaded. */
export async function patiently<T>(load: () => Promise<T>, pauses = PAUSES_MS): Promise<T> {
  for (const pause of pauses) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  return load();
}

export function lazyPage<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  const Page = lazy(() => patiently(load)) as unknown as ComponentType<P>;
  return function LazyPage(props: P) {
    const { t } = useTranslation();
    return (
      <Suspense fallback={<Loading label={t("app.loading")} />}>
        <Page {...props} />
      </Suspense>
    );
  };
}

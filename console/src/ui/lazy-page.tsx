// A page in a file of its own, loaded when it is first shown.
import { type ComponentType, Suspense, lazy } from "react";
import { useTranslation } from "react-i18next";
import { Loading } from "./states";

export function lazyPage<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  const Page = lazy(load) as unknown as ComponentType<P>;
  return function LazyPage(props: P) {
    const { t } = useTranslation();
    return (
      <Suspense fallback={<Loading label={t("app.loading")} />}>
        <Page {...props} />
      </Suspense>
    );
  };
}

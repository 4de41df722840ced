// A small line chart as plain SVG, with a text that says the same.

type Props = {
  values: readonly number[];
  label: string;
  width?: number;
  height?: number;
  filled?: boolean;
  max?: number;
};

/** The points of the line; the newest value is at the right edge. */
export function pointsOf(values: readonly number[], width: number, height: number, max: number): [number, number][] {
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  const top = max > 0 ? max : 1;
  return values.map((value, index) => [
    values.length > 1 ? index * step : width,
    height - 1 - (Math.min(value, top) / top) * (height - 3),
  ]);
}

export function Sparkline({ values, label, width = 80, height = 22, filled = false, max }: Props) {
  const highest = max ?? Math.max(...values);
  const points = pointsOf(values, width, height, highest);
  const line = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  const last = points.at(-1);
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${width} ${height}`}
      width={filled ? "100%" : width}
      height={height}
      preserveAspectRatio="none"
      className="block overflow-visible text-accent"
    >
      <title>{label}</title>
      {filled && <polygon points={`0,${height} ${line} ${width},${height}`} className="fill-current opacity-15" />}
      {values.length > 1 && (
        <polyline
          points={line}
          fill="none"
          stroke="currentColor"
          strokeWidth="1.5"
          strokeLinejoin="round"
          vectorEffect="non-scaling-stroke"
        />
      )}
      {!filled && last && <circle cx={last[0]} cy={last[1]} r="1.8" className="fill-current" />}
    </svg>
  );
}

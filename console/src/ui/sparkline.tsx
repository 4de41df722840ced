// A small line chart as plain SVG, with a text that says the same.

/** How wide a single value is. */
const DASH = 6;

type Props = {
  values: readonly number[];
  label: string;
  width?: number;
  height?: number;
  filled?: boolean;
  max?: number;
};

/** The points of the line; the newest value is at the right edge. One value is a dash there: what
 *  was before it is not known. */
export function pointsOf(values: readonly number[], width: number, height: number, max: number): [number, number][] {
  const top = max > 0 ? max : 1;
  const at = (value: number) => height - 1 - (Math.min(value, top) / top) * (height - 3);
  if (values.length === 1) return [width - DASH, width].map((x) => [x, at(values[0]!)]);
  const step = width / (values.length - 1);
  return values.map((value, index) => [index * step, at(value)]);
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
      {filled && (
        <polygon
          points={`${points[0]?.[0] ?? 0},${height} ${line} ${width},${height}`}
          className="fill-current opacity-15"
        />
      )}
      <polyline
        points={line}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        strokeLinejoin="round"
        vectorEffect="non-scaling-stroke"
      />
      {!filled && last && <circle cx={last[0]} cy={last[1]} r="1.8" className="fill-current" />}
    </svg>
  );
}

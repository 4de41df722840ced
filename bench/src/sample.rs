//! What one measurement found, and the medians over several.

use std::time::Duration;

/// One measurement: how many answers in how long, and how long each took.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// From the first request to the last counted answer.
    pub elapsed: Duration,
    /// Of each counted call.
    pub latencies: Vec<Duration>,
}

impl Sample {
    /// Counts another load that ran at the same time.
    pub fn join(&mut self, other: Self) {
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latencies.extend(other.latencies);
    }

    /// Throughput and latencies.
    pub fn figures(mut self) -> Figures {
        self.latencies.sort_unstable();
        let seconds = self.elapsed.as_secs_f64();
        let calls = self.latencies.len();
        Figures {
            per_second: if seconds > 0.0 { calls as f64 / seconds } else { 0.0 },
            p50: percentile(&self.latencies, 50),
            p99: percentile(&self.latencies, 99),
        }
    }
}

/// What is shown of a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Calls a second.
    pub per_second: f64,
    /// Half of the calls took at most this.
    pub p50: Duration,
    /// 99 of 100 calls took at most this.
    pub p99: Duration,
}

impl Figures {
    /// The median of each figure over the rounds; nothing where there was no round.
    pub fn median(rounds: &[Self]) -> Option<Self> {
        Some(Self {
            per_second: median(rounds.iter().map(|figures| figures.per_second).collect())?,
            p50: Duration::from_secs_f64(median(
                rounds.iter().map(|f| f.p50.as_secs_f64()).collect(),
            )?),
            p99: Duration::from_secs_f64(median(
                rounds.iter().map(|f| f.p99.as_secs_f64()).collect(),
            )?),
        })
    }
}

/// The middle value, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_all_joined_loads() {
        let of = |millis: std::ops::Range<u64>| Sample {
            elapsed: Duration::from_secs(2),
            latencies: millis.map(Duration::from_millis).collect(),
        };
        let mut sample = of(50..101);
        sample.join(of(0..50));
        let figures = sample.figures();
        assert_eq!(figures.per_second, 50.5);
        assert_eq!(figures.p50, Duration::from_millis(50));
        assert_eq!(figures.p99, Duration::from_millis(99));
    }

    #[test]
    fn the_median_needs_a_value() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
    }
}

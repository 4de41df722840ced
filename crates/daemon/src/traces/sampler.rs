//! Which calls become spans: `OTEL_TRACES_SAMPLER`, by the rules of OpenTelemetry's own samplers.

use cofer_model::TraceParent;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sampler {
    /// Whether a call does as the trace that it belongs to.
    follows_parent: bool,
    /// The share of the others that is kept, of 2^56.
    kept: u64,
}

/// The part of a trace's id that is random, by which all who take part decide alike.
const RANDOM: u64 = 1 << 56;

impl Default for Sampler {
    fn default() -> Self {
        Self { follows_parent: true, kept: RANDOM }
    }
}

impl Sampler {
    /// A sampler by its name; none where there is no such.
    pub(super) fn read(name: &str, argument: Option<&str>) -> Option<Self> {
        let plain = name.strip_prefix("parentbased_");
        let kept = match plain.unwrap_or(name) {
            "always_on" => RANDOM,
            "always_off" => 0,
            "traceidratio" => (share(argument)? * RANDOM as f64) as u64,
            _ => return None,
        };
        Some(Self { follows_parent: plain.is_some(), kept })
    }

    /// Whether a call of this trace is kept.
    pub(super) fn keeps(self, parent: Option<TraceParent>, trace_id: [u8; 16]) -> bool {
        if let Some(parent) = parent.filter(|_| self.follows_parent) {
            return parent.sampled;
        }
        u128::from_be_bytes(trace_id) as u64 % RANDOM >= RANDOM - self.kept
    }
}

fn share(argument: Option<&str>) -> Option<f64> {
    let Some(argument) = argument else {
        return Some(1.0);
    };
    argument.parse().ok().filter(|share| (0.0..=1.0).contains(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: [u8; 16] = [1, 1, 1, 1, 1, 1, 1, 1, 255, 0x3f, 0, 0, 0, 0, 0, 0];
    const HIGH: [u8; 16] = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0xc1, 0, 0, 0, 0, 0, 0];

    fn kept(name: &str, argument: Option<&str>, parent: Option<bool>) -> [bool; 2] {
        let sampler = Sampler::read(name, argument).unwrap();
        [LOW, HIGH].map(|trace_id| {
            let parent = parent.map(|sampled| TraceParent { trace_id, span_id: [1; 8], sampled });
            sampler.keeps(parent, trace_id)
        })
    }

    #[test]
    fn calls_without_a_parent_are_kept_as_the_name_says() {
        assert_eq!(kept("always_on", None, None), [true, true]);
        assert_eq!(kept("always_off", None, None), [false, false]);
        assert_eq!(kept("traceidratio", Some("0.25"), None), [false, true]);
        assert_eq!(kept("traceidratio", Some("0"), None), [false, false]);
        assert_eq!(kept("traceidratio", None, None), [true, true]);
        assert_eq!(kept("parentbased_traceidratio", Some("0.8"), None), [true, true]);
        assert_eq!(kept("parentbased_always_off", None, None), [false, false]);
    }

    #[test]
    fn a_call_does_as_its_parent_where_the_sampler_follows_it() {
        assert_eq!(kept("parentbased_always_off", None, Some(true)), [true, true]);
        assert_eq!(kept("parentbased_always_on", None, Some(false)), [false, false]);
        assert_eq!(kept("always_on", None, Some(false)), [true, true]);
        assert_eq!(Some(Sampler::default()), Sampler::read("parentbased_always_on", None));
    }

    #[test]
    fn there_are_no_other_samplers_and_no_more_than_all() {
        for (name, argument) in
            [("jaeger_remote", None), ("traceidratio", Some("1.5")), ("traceidratio", Some("x"))]
        {
            assert_eq!(Sampler::read(name, argument), None);
        }
    }
}

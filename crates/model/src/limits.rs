//! What a server may use at most, and how sizes are written.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a server may use at most, as written by the person who registered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Cores, such as `"0.5"`.
    #[serde(default = "Limits::default_cpu")]
    pub cpu: String,
    /// Bytes of memory, such as `"512M"`.
    #[serde(default = "Limits::default_memory")]
    pub memory: String,
    /// Bytes of writable storage, such as `"1G"`.
    #[serde(default = "Limits::default_disk")]
    pub disk: String,
    /// Processes and threads.
    #[serde(default = "Limits::default_pids")]
    pub pids: u32,
}

impl Limits {
    fn default_cpu() -> String {
        "0.5".to_owned()
    }

    fn default_memory() -> String {
        "512M".to_owned()
    }

    fn default_disk() -> String {
        "1G".to_owned()
    }

    const fn default_pids() -> u32 {
        256
    }

    /// Cores as a number, where `cpu` is one above zero.
    pub fn cores(&self) -> Option<f64> {
        self.cpu.parse().ok().filter(|cores: &f64| cores.is_finite() && *cores > 0.0)
    }

    /// `memory` in bytes.
    pub fn memory_bytes(&self) -> Option<u64> {
        parse_bytes(&self.memory)
    }

    /// `disk` in bytes.
    pub fn disk_bytes(&self) -> Option<u64> {
        parse_bytes(&self.disk)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu: Self::default_cpu(),
            memory: Self::default_memory(),
            disk: Self::default_disk(),
            pids: Self::default_pids(),
        }
    }
}

/// A size such as `512M`, `1G`, `64KiB` or `1048576`; powers of 1024, as Podman reads them.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let shift = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    let count: u64 = digits.trim().parse().ok()?;
    (count > 0).then_some(())?;
    count.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_podman_reads_them() {
        for (text, bytes) in [
            ("1048576", Some(1 << 20)),
            ("512M", Some(512 << 20)),
            ("1g", Some(1 << 30)),
            ("64KiB", Some(64 << 10)),
            ("5mb", Some(5 << 20)),
            ("0", None),
            ("-1", None),
            ("1.5G", None),
            ("much", None),
            ("", None),
            ("99999999999T", None),
        ] {
            assert_eq!(parse_bytes(text), bytes, "{text:?}");
        }
    }

    #[test]
    fn defaults_are_half_a_core_512_mb_and_1_gb() {
        // covers: HST-5.1
        let limits = Limits::default();
        assert_eq!(limits.cores(), Some(0.5));
        assert_eq!(limits.memory_bytes(), Some(512 << 20));
        assert_eq!(limits.disk_bytes(), Some(1 << 30));
    }
}

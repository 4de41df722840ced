//! A program that does nothing but exit with a number of its own, as small as a program can
//! be: what a runtime is tried with, without an image and without anything of this machine.

/// What it exits with; none of the numbers by which Podman tells its own failures.
pub(crate) const EXIT_CODE: i32 = 42;

/// Where it is loaded.
const BASE: u64 = 0x40_0000;
const HEADER: u16 = 64;
const SEGMENT_HEADER: u16 = 56;

/// `exit(42)`, in the machine's own code, and the machine's number in an ELF header.
#[cfg(target_arch = "x86_64")]
const MACHINE: (u16, &[u8]) = (
    62,
    &[
        0xb8, 0x3c, 0, 0, 0, // mov eax, 60
        0xbf, 0x2a, 0, 0, 0, // mov edi, 42
        0x0f, 0x05, // syscall
    ],
);
#[cfg(target_arch = "aarch64")]
const MACHINE: (u16, &[u8]) = (
    183,
    &[
        0x40, 0x05, 0x80, 0xd2, // mov x0, #42
        0xa8, 0x0b, 0x80, 0xd2, // mov x8, #93
        0x01, 0x00, 0x00, 0xd4, // svc #0
    ],
);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: (u16, &[u8]) = (0, &[]);

/// The program: an ELF header, one segment that holds the whole file, and the code.
pub(crate) fn program() -> Vec<u8> {
    let (machine, code) = MACHINE;
    let start = HEADER + SEGMENT_HEADER;
    let size = u64::from(start) + code.len() as u64;
    // 64 bits, little end first, version 1.
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let halves = |file: &mut Vec<u8>, values: &[u16]| {
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let words = |file: &mut Vec<u8>, values: &[u32]| {
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let longs = |file: &mut Vec<u8>, values: &[u64]| {
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    // An executable for the machine, of version 1.
    halves(&mut file, &[2, machine]);
    words(&mut file, &[1]);
    // Where it begins to run, where the segment's header is, and no sections.
    longs(&mut file, &[BASE + u64::from(start), u64::from(HEADER), 0]);
    words(&mut file, &[0]);
    halves(&mut file, &[HEADER, SEGMENT_HEADER, 1, 0, 0, 0]);
    // A segment to load, that can be read and run: the whole file.
    words(&mut file, &[1, 5]);
    longs(&mut file, &[0, BASE, BASE, size, size, 0x1000]);
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_program_runs_and_exits_with_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trial");
        std::fs::write(&path, program()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the program under test")]
        let status = std::process::Command::new(path).status().unwrap();
        assert_eq!(status.code(), Some(EXIT_CODE));
    }
}

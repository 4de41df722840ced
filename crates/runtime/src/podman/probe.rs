//! The program of a trial: writes the release of the kernel it runs on and exits with a number
//! of its own. As small as a program can be, so that a runtime is tried without an image and
//! without anything of this machine.

/// Its exit code; none of those by which Podman reports its own failures.
pub(crate) const EXIT_CODE: i32 = 42;

/// Where it is loaded.
const BASE: u64 = 0x40_0000;
const HEADER: u16 = 64;
const SEGMENT_HEADER: u16 = 56;

/// The machine's number in an ELF header, and the code:
/// `uname(buffer); write(1, buffer.release, 65); exit(42)`. A `utsname` is six arrays of 65
/// bytes, the release is the third.
#[cfg(target_arch = "x86_64")]
const MACHINE: (u16, &[u8]) = (
    62,
    &[
        0x48, 0x81, 0xec, 0, 2, 0, 0, // sub rsp, 512
        0x48, 0x89, 0xe7, // mov rdi, rsp
        0xb8, 0x3f, 0, 0, 0, // mov eax, 63
        0x0f, 0x05, // syscall
        0xbf, 0x01, 0, 0, 0, // mov edi, 1
        0x48, 0x8d, 0xb4, 0x24, 0x82, 0, 0, 0, // lea rsi, [rsp + 130]
        0xba, 0x41, 0, 0, 0, // mov edx, 65
        0xb8, 0x01, 0, 0, 0, // mov eax, 1
        0x0f, 0x05, // syscall
        0xb8, 0x3c, 0, 0, 0, // mov eax, 60
        0xbf, 0x2a, 0, 0, 0, // mov edi, 42
        0x0f, 0x05, // syscall
    ],
);
#[cfg(target_arch = "aarch64")]
const MACHINE: (u16, &[u8]) = (
    183,
    &[
        0xff, 0x03, 0x08, 0xd1, // sub sp, sp, #512
        0xe0, 0x03, 0x00, 0x91, // mov x0, sp
        0x08, 0x14, 0x80, 0xd2, // mov x8, #160
        0x01, 0x00, 0x00, 0xd4, // svc #0
        0x20, 0x00, 0x80, 0xd2, // mov x0, #1
        0xe1, 0x0b, 0x02, 0x91, // add x1, sp, #130
        0x22, 0x08, 0x80, 0xd2, // mov x2, #65
        0x08, 0x08, 0x80, 0xd2, // mov x8, #64
        0x01, 0x00, 0x00, 0xd4, // svc #0
        0x40, 0x05, 0x80, 0xd2, // mov x0, #42
        0xa8, 0x0b, 0x80, 0xd2, // mov x8, #93
        0x01, 0x00, 0x00, 0xd4, // svc #0
    ],
);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: (u16, &[u8]) = (0, &[]);

/// The kernel's release in what the program wrote: text up to the first NUL byte.
pub(crate) fn kernel_release(output: &[u8]) -> String {
    let end = output.iter().position(|byte| *byte == 0).unwrap_or(output.len());
    String::from_utf8_lossy(&output[..end]).trim().to_owned()
}

/// The release of this machine's kernel.
pub(crate) fn host_kernel() -> std::io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned())
}

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
    fn the_program_reports_its_kernel_and_exits_with_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trial");
        std::fs::write(&path, program()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the program under test")]
        let output = std::process::Command::new(path).output().unwrap();
        assert_eq!(output.status.code(), Some(EXIT_CODE));
        assert_eq!(kernel_release(&output.stdout), host_kernel().unwrap());
    }
}

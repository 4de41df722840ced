//! What a program is started with: the container's own variables, and over them those that were
//! asked for, in which `$NAME` stands for what it was before. And where the program is.

use std::collections::BTreeMap;
use std::ffi::CString;

/// Name → value.
pub(crate) type Variables = BTreeMap<Vec<u8>, Vec<u8>>;

/// `asked` over `own`.
pub(crate) fn joined(own: Variables, asked: &[Vec<u8>]) -> Variables {
    let mut variables = own;
    for pair in asked {
        let Some(at) = pair.iter().position(|byte| *byte == b'=') else { continue };
        let value = expanded(&pair[at + 1..], &variables);
        variables.insert(pair[..at].to_vec(), value);
    }
    variables
}

fn expanded(value: &[u8], variables: &Variables) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        out.extend(&rest[..at]);
        let after = &rest[at + 1..];
        let Some((name, used)) = name(after) else {
            out.push(b'$');
            rest = after;
            continue;
        };
        out.extend(variables.get(name).map(Vec::as_slice).unwrap_or_default());
        rest = &after[used..];
    }
    out.extend(rest);
    out
}

/// A variable's name at the beginning of `text`, in braces or not, and how long all of it is.
fn name(text: &[u8]) -> Option<(&[u8], usize)> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if let Some(inside) = text.strip_prefix(b"{") {
        let end = inside.iter().position(|byte| *byte == b'}')?;
        return inside[..end].iter().all(fits).then_some((&inside[..end], end + 2));
    }
    let end = text.iter().position(|byte| !fits(byte)).unwrap_or(text.len());
    (end > 0 && !text[0].is_ascii_digit()).then_some((&text[..end], end))
}

/// Where a program may be, in the order in which it is looked for.
pub(crate) fn places(program: &[u8], variables: &Variables) -> Vec<CString> {
    let path = variables
        .get(b"PATH".as_slice())
        .map_or(b"/usr/local/bin:/usr/bin:/bin".as_slice(), Vec::as_slice);
    if program.contains(&b'/') {
        return CString::new(program).into_iter().collect();
    }
    let folders = path.split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
    folders.filter_map(|folder| CString::new([folder, b"/", program].concat()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_name_what_was_there_before() {
        let own =
            Variables::from([(b"PATH".to_vec(), b"/bin".to_vec()), (b"A".to_vec(), b"1".to_vec())]);
        let asked = ["PATH=/x:$PATH", "B=${A}2", "C=$B", "D=$NONE.", "E=$ $1 ${A", "nonsense"]
            .map(|text| text.as_bytes().to_vec());
        let joined = joined(own, &asked);
        let value = |name: &str| String::from_utf8(joined[name.as_bytes()].clone()).unwrap();
        assert_eq!(
            ["PATH", "A", "B", "C", "D", "E"].map(value),
            ["/x:/bin", "1", "12", "12", ".", "$ $1 ${A"]
        );
        assert_eq!(joined.len(), 6);
    }

    #[test]
    fn a_program_is_looked_for_on_the_path_of_the_container() {
        let variables = Variables::from([(b"PATH".to_vec(), b"/a::/b".to_vec())]);
        let texts = |program: &[u8]| -> Vec<String> {
            places(program, &variables)
                .into_iter()
                .map(|place| place.into_string().unwrap())
                .collect()
        };
        assert_eq!(texts(b"sh"), ["/a/sh", "/b/sh"]);
        assert_eq!(texts(b"./sh"), ["./sh"]);
    }
}

package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StorageKeyTest {
    private static final IdempotenceId ID = new IdempotenceId("8e03978e-40d5-43dd-bc93-6894a57f9324");

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a",
                "A",
                "Z",
                "z",
                "0",
                "9",
                "payments",
                "a.b_c-D9",
                "9--",
                "0123456789012345678901234567890123456789012345678901234567890123"
            })
    void everyKeyOfAServiceBeginsWithItsName(String namespace) {
        assertThat(StorageKey.of(namespace, "", "", ID).value()).matches("idem:" + namespace + ":[A-Za-z0-9_-]{43}");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                ".a",
                "-a",
                "_a",
                "a b",
                "a:b",
                "a*",
                "{a}",
                "a\n",
                "é",
                "aé",
                "a/",
                "a[",
                "a`",
                "01234567890123456789012345678901234567890123456789012345678901234"
            })
    void namespaceIsShortPlainText(String namespace) {
        assertThatThrownBy(() -> StorageKey.of(namespace, "", "", ID)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> StorageKey.prefix(namespace)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void aKeyIsShownAsItIsStored() {
        assertThat(new StorageKey("idem:a:b")).hasToString("idem:a:b");
    }

    @Test
    void aKeyThatWasCopiedIsParsed() {
        StorageKey key = StorageKey.of("a.b_c-D9", "", "", ID);
        assertThat(StorageKey.parse(key.value())).isEqualTo(key);
        assertThat(key.namespace()).isEqualTo("a.b_c-D9");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "idem:default:",
                "fwSesQlsvnbXLsz3mpO1EDXcNMz-b0KhDOAXB79__q0",
                "idem:default:fwSesQlsvnbXLsz3mpO1EDXcNMz-b0KhDOAXB79__q",
                "idem:default:fwSesQlsvnbXLsz3mpO1EDXcNMz-b0KhDOAXB79__q0a",
                "idem:default:fwSesQlsvnbXLsz3mpO1EDXcNMz-b0KhDOAXB79__q0 ",
                "idem:-:fwSesQlsvnbXLsz3mpO1EDXcNMz-b0KhDOAXB79__q0",
                "Idem:default:fwSesQlsvnbXLsz3mpO1EDXcNMz-b0KhDOAXB79__q0",
            })
    void whatIsNotAWholeKeyIsRefused(String copied) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> StorageKey.parse(copied))
                .withMessageContaining("idem:<namespace>:<43 characters>");
        assertThatIllegalArgumentException().isThrownBy(() -> new StorageKey(copied).namespace());
    }

    @Test
    void keyOfAnIdNeverChanges() {
        assertThat(StorageKey.of("default", "principal:ann", "pay", ID).value())
                .isEqualTo("idem:default:fwSesQlsvnbXLsz3mpO1EDXcNMz-b0KhDOAXB79__q0");
    }
}

package io.idempotence.server.redis.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LuaScriptTest {
    @ParameterizedTest
    @ValueSource(strings = {"\n", "\r\n"})
    void includesWhateverEndsTheLines(String lineEnd) {
        String source = String.join(lineEnd, "local key = KEYS[1]", "", "--#include record.lua", "", "return 1", "");

        assertThat(LuaScript.withIncludes("some.lua", source))
                .contains("local function lease_left(key, record)")
                .doesNotContain("#include");
    }

    @ParameterizedTest
    @ValueSource(strings = {"--#include record.lua", "  --#include record.lua\n", "--#include  record.lua\n"})
    void anIncludeThatWouldStayACommentIsRefused(String source) {
        assertThatThrownBy(() -> LuaScript.withIncludes("some.lua", source))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("some.lua");
    }

    @Test
    void aFileThatIsMissingIsNamed() {
        assertThatThrownBy(() -> LuaScript.withIncludes("some.lua", "--#include nothing.lua\n"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("nothing.lua");
    }
}

package io.idempotence.server.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.internal.FieldDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CanonicalQueryTest {
    private static byte[] digest(String query) {
        FieldDigest digest = new FieldDigest();
        CanonicalQuery.of(query).addTo(digest);
        return digest.digest();
    }

    @ParameterizedTest
    @CsvSource({
        "a=1&b=2, b=2&a=1",
        "a=%31, a=1",
        "a=%c3%bc, a=%C3%BC",
        "a=x+y, a=x%20y",
        "a%3d=1, a%3D=1",
        "a=1&&b=2, a=1&b=2",
    })
    void orderAndEscapingMakeNoDifference(String one, String other) {
        assertThat(digest(one)).isEqualTo(digest(other));
    }

    @ParameterizedTest
    @CsvSource({
        "to=Ren%E9, to=Ren%E8",
        "to=Ren%E9, to=Ren%EF%BF%BD",
        "to=Ren%E9, to=Ren%C3%A9",
        "to=%zz, to=%25zz",
        "to=%zz, to=%zy",
        "to=%, to=%25",
        "to=%2, to=%252",
        "to=\u00fc, to=%C3%BC",
        "a=1&a=2, a=2&a=1",
        "a, a=",
        "a%3Db, a=b",
        "a%26b, a&b",
        "a=+, a=%2B",
    })
    void everythingElseMakesADifference(String one, String other) {
        assertThat(digest(one)).isNotEqualTo(digest(other));
    }

    @Test
    void absentQueryIsAsAnEmptyOne() {
        assertThat(digest(null)).isEqualTo(digest(""));
    }

    /** One parameter, and whether each of its bytes is to be escaped. */
    record Parameter(List<Byte> name, List<Byte> value, List<Boolean> escaped) {
        String written() {
            return written(name, 0) + "=" + written(value, name.size());
        }

        private String written(List<Byte> bytes, int from) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < bytes.size(); i++) {
                byte b = bytes.get(i);
                boolean plain = b == 'a' || b == '7';
                text.append(
                        plain && !escaped.get((from + i) % escaped.size())
                                ? Character.toString(b)
                                : String.format("%%%02X", b & 0xff));
            }
            return text.toString();
        }
    }

    @Provide
    Arbitrary<List<Parameter>> parameters() {
        Arbitrary<Byte> bytes = Arbitraries.of(
                (byte) 'a', (byte) '7', (byte) '%', (byte) '&', (byte) '=', (byte) '+', (byte) 0xe9, (byte) 0xc3);
        return Combinators.combine(
                        bytes.list().ofMinSize(1).ofMaxSize(2),
                        bytes.list().ofMaxSize(3),
                        Arbitraries.of(true, false).list().ofSize(3))
                .as(Parameter::new)
                .list()
                .ofMaxSize(3);
    }

    private static String query(List<Parameter> parameters) {
        return String.join("&", parameters.stream().map(Parameter::written).toList());
    }

    private static Map<String, List<List<Byte>>> meaning(List<Parameter> parameters) {
        Map<String, List<List<Byte>>> values = new TreeMap<>();
        for (Parameter parameter : parameters) {
            values.computeIfAbsent(parameter.name.toString(), name -> new ArrayList<>())
                    .add(parameter.value);
        }
        return values;
    }

    @Property
    void twoQueriesAreTheSameIfAndOnlyIfTheyMeanTheSame(
            @ForAll("parameters") List<Parameter> one, @ForAll("parameters") List<Parameter> other) {
        assertThat(java.util.Arrays.equals(digest(query(one)), digest(query(other))))
                .isEqualTo(meaning(one).equals(meaning(other)));
    }
}

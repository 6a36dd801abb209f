package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.method.LateCreatedBeansTest.Counter;
import org.junit.jupiter.api.Test;

/** An application whose own tests replace the bean of {@link Idempotence} with a mock. */
class MockedIdempotenceTest {
    private final Idempotence mock = mock(Idempotence.class);

    /** It failed without an explanation. */
    @Test
    void aMockWithoutAPolicyFailsTheStartOfOperations() {
        ContextHierarchyTest.application()
                .withBean(Idempotence.class, () -> mock)
                .withBean(Counter.class)
                .run(context -> assertThat(context.getStartupFailure())
                        .isInstanceOf(SetUpException.class)
                        .hasMessageContaining("is a mock"));
    }

    @Test
    void aMockWithoutAPolicyFailsTheStartOfAFilter() {
        MisusedAnnotationsTest.application()
                .withBean(Idempotence.class, () -> mock)
                .run(context -> assertThat(context.getStartupFailure())
                        .hasRootCauseInstanceOf(SetUpException.class)
                        .rootCause()
                        .hasMessage("The bean of Idempotence is a mock: its policy() returns null."));
    }

    @Test
    void aMockWithAPolicyAnswersCallsOfOperations() {
        when(mock.policy()).thenReturn(IdempotencePolicy.defaults());
        ContextHierarchyTest.application()
                .withBean(Idempotence.class, () -> mock)
                .withBean(Counter.class)
                .run(context ->
                        assertThat(context.getBean(Counter.class).count("id")).isNull());
    }
}

package io.idempotence.client;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaCodeUnitAccess;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import java.util.Arrays;
import java.util.concurrent.CompletionStage;

/** The allowed dependencies between the packages of this module, and the Feign types it may use. */
@AnalyzeClasses(packages = "io.idempotence", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    @ArchTest
    static final ArchRule clientDependsOnNoHttpLibraryAndOnInternalsOnlyForTheScope = noClasses()
            .that()
            .resideInAPackage("io.idempotence.client")
            .should()
            .dependOnClassesThat(resideInAnyPackage("io.idempotence.client.*..", "feign..", "okhttp3..", "okio..")
                    .and(not(resideInAPackage("io.idempotence.client.internal.scope"))));

    @ArchTest
    static final ArchRule scopesAndHttpDependOnNoCalls = noClasses()
            .that()
            .resideInAnyPackage("io.idempotence.client.internal.scope", "io.idempotence.client.internal.http")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                    "io.idempotence.client", "io.idempotence.client.internal.call", "io.github.resilience4j..");

    @ArchTest
    static final ArchRule internalsDependOnNoHttpLibrary = noClasses()
            .that()
            .resideInAPackage("io.idempotence.client.internal..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                    "io.idempotence.client.feign..",
                    "io.idempotence.client.okhttp..",
                    "feign..",
                    "okhttp3..",
                    "okio..");

    @ArchTest
    static final ArchRule noCycles =
            slices().matching("io.idempotence.(**)").should().beFreeOfCycles();

    @ArchTest
    static final ArchRule feignTypesThatOlderVersionsLackAreNotUsed = noClasses()
            .should()
            .dependOnClassesThat()
            .haveNameMatching("feign\\.(RequestInterceptors|ResponseInterceptors|DefaultRetryer|DefaultClient"
                    + "|DefaultInvocationHandlerFactory|interceptor\\..*)");

    /**
     * Times are measured by the monotonic clock, so that a jump of the other one neither cuts a call short nor drags it out. That
     * one is read where the protocol speaks of dates: Retry-After, the time of the first request, the server's retention. What
     * Retry-After comes to is capped by the deadline.
     */
    @ArchTest
    static final ArchRule theWallClockIsReadForDatesOnly = noClasses()
            .that()
            .resideInAPackage("io.idempotence.client..")
            .should(readTheWallClockOutsideOf(
                    "io.idempotence.client.internal.call.CallStateMachine.poll",
                    "io.idempotence.client.internal.call.RetryDecision.waitOrStop",
                    "io.idempotence.client.internal.scope.ScopeHistory$Call.<init>",
                    "io.idempotence.client.internal.scope.ScopeHistory$Call.sent",
                    "io.idempotence.client.internal.call.CallIdentity.checkRetention"));

    /** The JDK's timer thread outlives a web application, and keeps the classes of the one that used it first. */
    @ArchTest
    static final ArchRule nobodyRunsOnThreadsThatTheJdkShares = noClasses()
            .that()
            .resideInAPackage("io.idempotence.client..")
            .should()
            .callMethodWhere(describe(
                    "runs on a thread that the JDK shares",
                    call -> call.getTargetOwner().isAssignableTo(CompletionStage.class)
                            && call.getName().matches("orTimeout|completeOnTimeout|delayedExecutor|.*Async")));

    private static ArchCondition<JavaClass> readTheWallClockOutsideOf(String... places) {
        return new ArchCondition<>("read the wall clock elsewhere") {
            @Override
            public void check(JavaClass type, ConditionEvents events) {
                for (JavaCodeUnitAccess<?> access : type.getCodeUnitAccessesFromSelf()) {
                    String from = access.getOwner().getOwner().getName() + "."
                            + access.getOwner().getName();
                    if (isWallClock(access) && Arrays.stream(places).noneMatch(from::startsWith)) {
                        events.add(SimpleConditionEvent.satisfied(access, access.getDescription()));
                    }
                }
            }
        };
    }

    private static boolean isWallClock(JavaCodeUnitAccess<?> access) {
        String type = access.getTargetOwner().getName();
        String name = access.getTarget().getName();
        return (type.startsWith("java.time.") && (name.equals("now") || name.startsWith("system")))
                || (type.equals("java.lang.System") && name.equals("currentTimeMillis"))
                || (type.equals("java.util.Date")
                        && access.getTarget().getRawParameterTypes().isEmpty())
                || (type.equals("java.util.Calendar") && name.equals("getInstance"));
    }
}

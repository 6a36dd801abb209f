package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The classes and members of Jedis that the storage uses. All of them exist in the version of this run, even those that only a rare fault
 * would reach.
 */
@Tag("jedis")
class JedisVersionsTest {
    private static final String DRIVER = "redis.clients.";

    private static List<JavaClass> storage;

    @BeforeAll
    static void read() {
        storage = new ClassFileImporter()
                        .importUrl(RedisIdempotenceStorage.class
                                .getProtectionDomain()
                                .getCodeSource()
                                .getLocation())
                        .stream()
                        .filter(each ->
                                each.getPackageName().startsWith(RedisIdempotenceStorage.class.getPackageName()))
                        .toList();
    }

    @Test
    void everyClassOfTheDriverThatIsUsedExists() {
        List<String> classes = storage.stream()
                .flatMap(each -> each.getDirectDependenciesFromSelf().stream())
                .map(Dependency::getTargetClass)
                .map(JavaClass::getBaseComponentType)
                .map(JavaClass::getName)
                .filter(name -> name.startsWith(DRIVER))
                .distinct()
                .toList();

        assertThat(classes)
                .isNotEmpty()
                .allSatisfy(name -> assertThat(Class.forName(name)).isNotNull());
    }

    @Test
    void everyMemberOfTheDriverThatIsUsedExists() {
        List<JavaAccess<?>> accesses = storage.stream()
                .<JavaAccess<?>>flatMap(each -> each.getAccessesFromSelf().stream())
                .filter(access -> access.getTargetOwner().getName().startsWith(DRIVER))
                .toList();

        assertThat(accesses)
                .isNotEmpty()
                .allSatisfy(access -> assertThat(access.getTarget().resolveMember())
                        .as(access.getDescription())
                        .isPresent());
    }
}
